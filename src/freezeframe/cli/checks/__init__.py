"""What ``freezeframe doctor`` looks at, one thing a function; each tells what it found and what to do."""
