import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { KubernetesApiError, type Members } from '@plat/kubernetes'
import { silentLog } from '@plat/process'
import { Objects } from './objects.ts'

test('a kind that the cluster serves later is listed within 30 seconds, and that is reported', async () => {
  const clock = new TestClock()
  const stop = new AbortController()
  const reported: string[] = []
  const listed: readonly Members[] = [{ metadata: { namespace: 'team', name: 's', resourceVersion: '1' } }]
  let serves = false
  const api = {
    ask: async () => {
      if (!serves) throw new KubernetesApiError('not found', 404)
      return { status: 200, body: { metadata: { resourceVersion: '1' }, items: listed } }
    },
    watch: async function* () {},
  }
  const objects = new Objects({
    api,
    paths: ['/apis/agents.x-k8s.io/v1beta1/sandboxes'],
    clock,
    ids: { random: (bytes) => new Uint8Array(bytes) },
    log: silentLog,
    onChange: (changed) => reported.push(`${changed.length} changed`),
    onServed: () => reported.push('served'),
  })
  const following = objects.follow(stop.signal)
  await objects.whenSynced
  assert.equal(objects.known, false)
  serves = true
  await clock.advance(30_000)
  assert.deepEqual([objects.known, reported], [true, ['served', '1 changed']])
  stop.abort()
  await following
})
