import { test } from 'node:test'
import fc from 'fast-check'
import { acceptsRenderedFiles, acceptsRevocations } from './rendered-files.ts'

/** `npm run fuzz` draws more. */
const RUNS = 15

test('whatever objects a cluster accepts, the gateway accepts each file that is rendered from them', () => {
  fc.assert(acceptsRenderedFiles, { numRuns: RUNS })
})

test('whatever AgentRevocations a cluster accepts, the gateway accepts the file that is rendered from them', () => {
  fc.assert(acceptsRevocations, { numRuns: 10 * RUNS })
})
