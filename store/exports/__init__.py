"""Writers of sessions in other forms, none knows another."""
