"""`python -m dragoman`: the command line where no script is installed."""

from dragoman.cli import main

main()
