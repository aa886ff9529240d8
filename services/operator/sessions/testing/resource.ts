import assert from 'node:assert/strict'
import { type Kind, parseResource, type Resource } from '@plat/resources'

/** An object as a store hands it out, in the namespace `team` where its kind has one; fails on what no store would take. */
export function resource<K extends Kind>(kind: K, name: string, spec: unknown): Resource<K> {
  const metadata = { name, ...(kind !== 'TrustTier' && { namespace: 'team' }) }
  const { object, problems } = parseResource(
    kind,
    JSON.stringify({ apiVersion: 'plat.dev/v1alpha1', kind, metadata, spec }),
  )
  if (object === null) assert.fail(problems.join('\n'))
  const more = { uid: `uid-${name}`, resourceVersion: '1', generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' }
  return { ...object, metadata: { ...object.metadata, ...more } }
}
