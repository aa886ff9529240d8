import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Resource, StatusOf } from '@plat/resources'
import { resource } from '../testing/resource.ts'
import { inheritedTaints, TAINTS } from './taints.ts'

const CREATED = '2030-01-01T00:00:10Z'
const AFTER = '2030-01-01T00:00:20Z'

type Session = Resource<'AgentSession'>

interface More {
  readonly status?: StatusOf<'AgentSession'>
  readonly annotations?: Record<string, string>
}

function session(name: string, spec: object, { status, annotations = {} }: More = {}): Session {
  const { metadata, ...rest } = resource('AgentSession', name, { agentRef: 'a', ...spec })
  const changed = { ...metadata, creationTimestamp: CREATED, annotations }
  return { ...rest, metadata: changed, ...(status !== undefined && { status }) }
}

const fork = session('s', { fork: { parent: 'p', inheritTaints: true } })
const report = (members: object = {}) => ({
  annotations: { [TAINTS]: JSON.stringify({ at: AFTER, agent: 'a', labels: ['web'], ...members }) },
})

/** Labels, or the message why the fork waits. */
function resultOf(parent: Session | undefined, one = fork, copiedAt: number | null = null): readonly string[] | string {
  const result = inheritedTaints(one, parent, copiedAt)
  return 'reason' in result ? `${result.reason}: ${result.message}` : result
}

test('a fork inherits what the gateway reported of its parent after the fork was created', () => {
  assert.deepEqual(resultOf(session('p', {}, report())), ['web'])
  assert.deepEqual(resultOf(session('p', {}, report({ labels: [] }))), [])
  assert.deepEqual(resultOf(undefined, session('s', { fork: { parent: 'p' } })), [])
  const recorded = session(
    's',
    { fork: { parent: 'p', inheritTaints: true } },
    { status: { inheritedTaints: ['web'] } },
  )
  assert.deepEqual(resultOf(undefined, recorded), ['web'])
})

test('labels that the parent got before its workspace was copied are not lost', () => {
  const parent = session('p', {}, report())
  assert.match(String(resultOf(parent, fork, Date.parse(AFTER))), /^TaintsUnknown: .* and the workspace was copied/)
  assert.deepEqual(resultOf(parent, fork, Date.parse(CREATED)), ['web'])
})

test('a fork of a fork inherits what its parent inherited as well', () => {
  const inherits = { fork: { parent: 'g', inheritTaints: true } }
  const parent = session('p', inherits, { ...report(), status: { inheritedTaints: ['mail'] } })
  assert.deepEqual(resultOf(parent), ['mail', 'web'])
  assert.match(String(resultOf(session('p', inherits, report()))), /^TaintsUnknown: /)
})

test('a fork waits while the labels of its parent are not known', () => {
  assert.match(String(resultOf(undefined)), /^TaintsUnknown: there is no session p/)
  assert.match(String(resultOf(session('p', {}))), /^TaintsUnknown: .* session p .*: one comes with its next call/)
  const ended = session('p', {}, { status: { phase: 'Succeeded' } })
  assert.match(String(resultOf(ended)), /it has ended/)
  for (const members of [{ at: CREATED }, { at: 'soon' }, { agent: 'b' }, { labels: 'web' }, { labels: [1] }]) {
    assert.match(String(resultOf(session('p', {}, report(members)))), /^TaintsUnknown/, JSON.stringify(members))
  }
})
