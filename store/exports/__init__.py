"""Sessions as files: each format is one module, found through ``store.exports.registry``."""
