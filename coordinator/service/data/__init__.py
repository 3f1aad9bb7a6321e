"""Operations on data of jobs: what goes into the depot, and who gets it from there."""
