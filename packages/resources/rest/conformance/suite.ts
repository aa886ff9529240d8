import { test } from 'node:test'
import type { Face, Promised } from './face.ts'
import { descriptions, documents, lists, tables, watches } from './reads.ts'
import { creations, patches, refusals, removals, statuses, updates } from './writes.ts'

export type { AskOptions, Face, FaceResponse } from './face.ts'

/**
 * Behavior that Kubernetes clients rely on, for any API that serves these kinds: this one, and a real API server with the definitions. `open`
 * returns an API without objects of these kinds.
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
