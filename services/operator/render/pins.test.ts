import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pinsOf } from './pins.ts'

const DIGEST = `sha256:${'0'.repeat(64)}`

const server = {
  apiVersion: 'plat.dev/v1alpha1',
  kind: 'MCPServer',
  metadata: { name: 'notes', namespace: 'default' },
  spec: { url: 'http://notes.test/mcp' },
} as const

test('a pin of a policy that is not a digest is left out, and no unpinned tool is allowed then', () => {
  const policy = { mode: 'enforce', allowUnpinned: true, pins: { add: DIGEST, list: 'x' } } as const
  assert.deepEqual(pinsOf(server, [policy])?.pins, { add: [DIGEST] })
  assert.equal(pinsOf(server, [policy])?.allowUnpinned, false)
  assert.equal(pinsOf(server, [{ ...policy, pins: { add: DIGEST } }])?.allowUnpinned, true)
})
