"""`python -m dragoman.cli`: the command line where no script is installed."""

from dragoman.cli import main

main()
