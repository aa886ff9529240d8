import { test } from 'node:test'
import type { Face, Promised } from './face.ts'
import { descriptions, documents, lists, tables, watches } from './reads.ts'
import { creations, patches, refusals, removals, statuses, updates } from './writes.ts'

export type { AskOptions, Face, FaceResponse } from './face.ts'

/**
 * What clients of Kubernetes rely on, of any API that serves our kinds: ours, and a real API server with our definitions.
 * `open` gives a face whose kinds hold no objects.
 */
export function restConformance(name: string, open: () => Promise<Face>): void {
  const promise: Promised = (what, check) =>
    test(`${name}: ${what}`, async () => {
      const face = await open()
      try {
        await check(face)
      } finally {
        await face.close()
      }
    })
  creations(promise)
  refusals(promise)
  updates(promise)
  patches(promise)
  statuses(promise)
  removals(promise)
  lists(promise)
  tables(promise)
  watches(promise)
  documents(promise)
  descriptions(promise)
}
