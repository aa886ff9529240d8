import assert from 'node:assert/strict'
import { test } from 'node:test'
import { resource } from '../sessions/testing/resource.ts'
import { pinReportOf } from './pin-report.ts'

const AT = '2030-01-02T00:00:00Z'
const reportOf = (more: object = {}) =>
  JSON.stringify({ lastSeen: AT, observedTools: 2, driftedTools: [], unpinnedTools: 0, ...more })

function joined(annotations: Record<string, string>) {
  const { metadata, ...rest } = resource('MCPServer', 's', { url: 'https://s.example/mcp' })
  return pinReportOf({ ...rest, metadata: { ...metadata, annotations } })
}

test('a tool has drifted if it has for one gateway, and the newest report says when', () => {
  const report = joined({
    'plat.dev/pin-report.gateway-0': reportOf({ driftedTools: ['b'], lastSeen: '2030-01-01T12:00:00Z' }),
    'plat.dev/pin-report.gateway-1': reportOf({ observedTools: 3, unpinnedTools: 1 }),
    'plat.dev/pin-report': reportOf({ driftedTools: ['a', 'b'] }),
    'plat.dev/other': reportOf({ driftedTools: ['c'] }),
  })
  const id = 'team/s'
  assert.deepEqual(report, { id, lastSeen: AT, observedTools: 3, driftedTools: ['a', 'b'], unpinnedTools: 1 })
})

test('a report of a gateway that has gone does not count for ever', () => {
  const report = joined({
    'plat.dev/pin-report.gateway-0': reportOf(),
    'plat.dev/pin-report.gateway-9': reportOf({ driftedTools: ['b'], lastSeen: '2029-12-31T23:59:59Z' }),
  })
  assert.deepEqual(report?.driftedTools, [])
  // The only one counts however old it is.
  const old = { 'plat.dev/pin-report.gateway-9': reportOf({ lastSeen: '2001-01-01T00:00:00Z' }) }
  assert.equal(joined(old)?.lastSeen, '2001-01-01T00:00:00Z')
})

test('what is not a report is ignored', () => {
  assert.equal(joined({}), null)
  for (const text of ['', '{}', 'garbled', reportOf({ lastSeen: '2030-99-99T00:00:00Z' }), reportOf({ more: 1 })])
    assert.equal(joined({ 'plat.dev/pin-report.gateway-0': text }), null, text)
})
