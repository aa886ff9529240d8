import type { FileOwners } from './file-target.ts'

/** Nothing that a provider stores has an owner. */
export const noOwners: FileOwners = {
  owns: () => false,
  ownsBatch: () => false,
  ownsResults: () => false,
  labelsOf: () => [],
  labelsOfBatch: () => [],
  refusalFor: () => null,
}
