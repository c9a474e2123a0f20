"""Export formats: each has its own module or folder, listed in ``store.exports.registry``."""
