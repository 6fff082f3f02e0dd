"""The ways in to any game: PettingZoo, batches, Gymnasium, records in files, pictures, the conformance kit."""
