import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AgentSpec } from '@plat/resources'
import { resource } from '../testing/resource.ts'
import { isForkedWorkspace, type WorkspaceParts, workspaceHindrance } from './workspace.ts'

const agent: AgentSpec = { image: 'i', tier: 't', workspace: { size: '1Gi', volumeSnapshotClassName: 'fast' } }
const fork = resource('AgentSession', 's', { agentRef: 'a', user: 'ada', fork: { parent: 'p' } })
const parent = resource('AgentSession', 'p', { agentRef: 'a', user: 'ada' })
const snapshot = { name: 'plat-fork-s', ready: true, takenAt: '2030-01-01T00:00:00Z', restoreSize: '', error: '' }

function hindrance(more: Partial<WorkspaceParts>) {
  const parts = { session: fork, agent, parent, parentClaim: 'workspace-p', snapshot: null, snapshotsServed: true }
  return workspaceHindrance({ ...parts, ...more })
}

const reason = (more: Partial<WorkspaceParts>) => hindrance(more)?.reason ?? 'none'

test('a fork has its parent’s volume copied before it begins, and begins when the copy is ready', () => {
  assert.deepEqual(hindrance({})?.snapshot, { volumeClaim: 'workspace-p', className: 'fast' })
  const pending = hindrance({ snapshot: { ...snapshot, ready: false } })
  assert.deepEqual([pending?.reason, pending?.snapshot], ['SnapshotNotReady', undefined])
  assert.equal(hindrance({ snapshot }), null)
  // The parent may have ended since.
  assert.equal(hindrance({ snapshot, parent: undefined, parentClaim: null }), null)
  assert.equal(reason({ snapshot: { ...snapshot, takenAt: '' } }), 'SnapshotNotReady')
})

test('only a fork of an Agent with a snapshot class waits for a copy, and only until it has begun', () => {
  const plain = resource('AgentSession', 's', { agentRef: 'a', user: 'ada' })
  assert.equal(hindrance({ session: plain }), null)
  assert.equal(hindrance({ agent: { ...agent, workspace: { size: '1Gi' } } }), null)
  assert.equal(hindrance({ session: { ...fork, status: { startedAt: '2030-01-01T00:00:00Z' } } }), null)
  assert.deepEqual([isForkedWorkspace(fork, agent), isForkedWorkspace(plain, agent)], [true, false])
})

test('a fork without a copy says what is missing', () => {
  assert.equal(reason({ snapshotsServed: false }), 'SnapshotsNotServed')
  assert.equal(reason({ parent: undefined, parentClaim: null }), 'ParentNotFound')
  assert.equal(reason({ parentClaim: null }), 'ParentHasNoWorkspace')
  const failed = hindrance({ snapshot: { ...snapshot, ready: false, error: `no space ${'x'.repeat(1000)}` } })
  assert.equal(failed?.reason, 'SnapshotFailed')
  assert.match(failed?.message ?? '', /^VolumeSnapshot plat-fork-s .*: no space x+$/)
  assert.ok((failed?.message ?? '').length < 600)
})

test('the files of a session are not copied for another Agent or another user', () => {
  for (const spec of [{ agentRef: 'b', user: 'ada' }, { agentRef: 'a', user: 'bob' }, { agentRef: 'a' }]) {
    const differs = hindrance({ parent: resource('AgentSession', 'p', spec) })
    assert.deepEqual([differs?.reason, differs?.snapshot], ['ParentDiffers', undefined], JSON.stringify(spec))
  }
})
