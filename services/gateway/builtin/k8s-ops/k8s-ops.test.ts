import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock } from '@plat/core'
import { tempFolder } from '@plat/testkit/local'
import fc from 'fast-check'
import { createK8sOps } from './index.ts'
import { newest } from './read/logs-tool.ts'
import { k8sConfig, problemsOf } from './testing/fixture.ts'

function fileOf(text: string): string {
  const file = join(tempFolder(), 'file')
  writeFileSync(file, text)
  return file
}

const unreachable = { fetchBytes: () => assert.fail('unexpected request') }

test('k8sOps has the limits of the contract, and refuses other values', () => {
  const { maxLogLines, maxLogBytes, maxListItems, timeoutSeconds, writes } = k8sConfig({})
  assert.deepEqual([maxLogLines, maxLogBytes, maxListItems, timeoutSeconds], [200, 64 * 1024, 200, 10])
  assert.deepEqual([writes.mode, writes.approval, writes.maxReplicas], ['proposal', 'required', 50])
  assert.deepEqual(problemsOf({ maxLogLines: 5000, maxLogBytes: 1024 * 1024, maxListItems: 1000 }), [])
  for (const [key, most] of [
    ['maxLogLines', 5000],
    ['maxLogBytes', 1024 * 1024],
    ['maxListItems', 1000],
  ] as const) {
    assert.match(problemsOf({ [key]: most + 1 }).join(), new RegExp(`^k8sOps.${key}: must be .*${most}`))
  }
})

test('impossible names of namespaces and service accounts are refused with their path', () => {
  assert.match(problemsOf({ namespaces: ['shop', 'shop-*'] }).join(), /^k8sOps\.namespaces\[1\]: .*no globs/)
  assert.match(problemsOf({ writes: { namespaces: ['a/b'] } }).join(), /^k8sOps\.writes\.namespaces\[0\]/)
  const unread = problemsOf({ namespaces: ['shop'], writes: { namespaces: ['bank'] } })
  assert.match(unread.join(), /^k8sOps\.writes\.namespaces\[0\]: must be in k8sOps\.namespaces, too/)
  for (const serviceAccount of ['reader', 'ops/reader/x', 'ops/', 'system:masters/x'])
    assert.match(problemsOf({ serviceAccount }).join(), /^k8sOps\.serviceAccount/, serviceAccount)
})

test('tool results have the labels of taintLabels, and tool lists have none', async () => {
  // Shows D3.k8sOps.taintLabels.
  const api = { enabled: true, apiServer: 'http://127.0.0.1:9', tokenFile: fileOf('a-token') }
  const made = async (own: object) =>
    createK8sOps({ config: k8sConfig({ ...api, ...own }), env: {}, dialer: unreachable, clock: systemClock })
  const usual = await made({})
  assert.deepEqual(usual?.labels('k8s_get').taints, ['untrusted-input'])
  assert.deepEqual(usual?.labels(null).taints, [])
  assert.deepEqual((await made({ taintLabels: ['cluster'] }))?.labels('k8s_logs').taints, ['cluster'])
  assert.equal(await made({ enabled: false }), null)
})

test('without an address the API server of the pod is used; a start without one or without credentials is an error', async () => {
  const start = (own: object, env: NodeJS.ProcessEnv = {}) =>
    createK8sOps({ config: k8sConfig({ enabled: true, ...own }), env, dialer: unreachable, clock: systemClock })
  const files = { tokenFile: fileOf('a-token'), caFile: fileOf('an authority') }
  const pod = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '6443' }
  await assert.rejects(start(files), /^Error: k8sOps: not in a cluster/)
  assert.notEqual(await start(files, pod), null)
  await assert.rejects(start({ ...files, caFile: '/no/such/ca.pem' }, pod), /^Error: k8sOps: .*\/no\/such\/ca\.pem/)
  await assert.rejects(
    start({ ...files, tokenFile: fileOf('two words') }, pod),
    /^Error: k8sOps: .*holds no valid token/,
  )
})

const logs = fc.array(fc.constantFrom('a', 'ü', '😀', '\n', 'a line\n')).map((parts) => parts.join(''))

test('a log response stays within both limits, and always has the end of the log', () => {
  fc.assert(
    fc.property(logs, fc.integer({ min: 1, max: 5 }), fc.integer({ min: 4, max: 40 }), (log, lines, size) => {
      const bytes = Buffer.from(log)
      const { text, isCut } = newest(bytes, lines, size)
      assert.ok(Buffer.byteLength(text) <= size && text.split('\n').length <= lines)
      assert.ok(log.endsWith(text) || log.endsWith(`${text}\n`))
      assert.equal(isCut, text.length + (log.endsWith('\n') ? 1 : 0) < log.length)
    }),
  )
})
