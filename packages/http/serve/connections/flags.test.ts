import assert from 'node:assert/strict'
import { test } from 'node:test'
import { peerProblems } from './flags.ts'

test('a trusted proxy that is not an address range is refused, naming the flag', () => {
  assert.deepEqual(peerProblems({ trustedProxies: ['10.0.0.0/8', 'fd00::/8'] }), [])
  for (const range of ['balancer', '10.0.0.0/33', '10.0.0', 'fd00::/129']) {
    const problem = `-trusted-proxies ${range}: must be an address range such as 10.0.0.0/8 or fd00::/8`
    assert.deepEqual(peerProblems({ trustedProxies: [range] }), [problem])
  }
})
