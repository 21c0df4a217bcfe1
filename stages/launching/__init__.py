"""How a stage's process comes to be: by itself, forked from a process that has its libraries, or as several ranks."""
