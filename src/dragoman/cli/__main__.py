"""`python -m dragoman.cli`: the same as `python -m dragoman`."""

from dragoman.cli import main

main()
