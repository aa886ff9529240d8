import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { tempFolder } from '@plat/testkit/local'
import type { Span } from '../spans/span.ts'
import { envelope, spanJson } from './encode.ts'

// The OpenTelemetry collector's decoder reads the export, independently of plat: needs Go and its module proxy.
const MODULE = fileURLToPath(new URL('../../../../../test/otlp/go', import.meta.url))

let reader = ''

before(() => {
  reader = join(tempFolder(), 'otlp')
  const { status, stderr } = spawnSync('go', ['build', '-o', reader, '.'], { cwd: MODULE, encoding: 'utf8' })
  assert.equal(status, 0, stderr)
})

const span: Span = {
  name: 'tools/call read',
  kind: 2,
  traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
  spanId: '00f067aa0ba902b7',
  parentSpanId: 'b7ad6b7169203331',
  traceState: 'a=b',
  startedAt: 1_790_000_000_000.25,
  endedAt: 1_790_000_000_001.75,
  attributes: { text: 'ä\ud800', half: 1.5, most: 2 ** 53 - 1, yes: true, list: ['a', 'b'], none: undefined },
  dropped: 2,
  events: [{ name: 'plat.attempt', at: 1_790_000_000_001, attributes: { 'plat.status': 500 } }],
  links: [{ traceId: 'c'.repeat(32), spanId: 'd'.repeat(16), state: '' }],
  error: 'denied',
}

test('the OpenTelemetry collector decodes an export as intended', () => {
  const { before: opening, behind } = envelope(
    { 'service.name': 'plat-gateway' },
    { name: 'plat-gateway', version: '1' },
  )
  const client: Span = { ...span, kind: 3, parentSpanId: null, traceState: '', dropped: 0, events: [], error: null }
  const input = opening + [span, client].map(spanJson).join(',') + behind
  const { stdout, stderr } = spawnSync(reader, { input, encoding: 'utf8' })
  assert.equal(stderr, '')
  const common = {
    name: span.name,
    traceId: span.traceId,
    spanId: span.spanId,
    start: '2026-09-21T14:13:20.00025Z',
    end: '2026-09-21T14:13:20.00175Z',
    attributes: { text: 'ä\ufffd', half: 1.5, most: 2 ** 53 - 1, yes: true, list: ['a', 'b'] },
    links: 1,
  }
  const server = { kind: 'Server', parent: span.parentSpanId, state: 'a=b', dropped: 2, events: 1, status: 'Error' }
  const plain = { kind: 'Client', parent: '', state: '', dropped: 0, events: 0, status: 'Unset', message: '' }
  assert.deepEqual(JSON.parse(stdout), {
    resource: { 'service.name': 'plat-gateway' },
    scope: 'plat-gateway 1',
    spans: [
      { ...common, ...server, message: 'denied' },
      { ...common, ...plain },
    ],
  })
})
