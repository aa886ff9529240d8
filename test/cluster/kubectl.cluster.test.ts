import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { buildBinaries } from './binaries.ts'
import { type Cluster, startCluster } from './plat.ts'

const PLAT = path.resolve(import.meta.dirname, '../../apps/cli/bin/plat.mjs')

/** Servers for kubectl: a real API server, and `plat up` on a separate folder. */
interface Sides {
  readonly cluster: string
  readonly files: string
}

let cluster: Cluster
let sides: Sides
let stopUp: () => Promise<void>
const folder = tempFolder()

before(async () => {
  cluster = await startCluster()
  mkdirSync(path.join(folder, 'resources'))
  const listen = ['--listen', '127.0.0.1:0', '--identity-listen', '127.0.0.1:0']
  const up = spawn(process.execPath, [PLAT, 'up', folder, ...listen], { stdio: ['ignore', 'pipe', 'inherit'] })
  stopUp = async () => {
    up.kill('SIGTERM')
    await once(up, 'exit')
  }
  for await (const line of createInterface(up.stdout)) if (line === 'plat is up.') break
  up.stdout.resume()
  sides = { cluster: cluster.kubeconfig, files: path.join(folder, '.plat/kubeconfig') }
})

after(async () => {
  await stopUp?.()
  await cluster?.stop()
})

interface Ran {
  readonly status: number | null
  readonly said: string
}

/** Values that differ between objects and over time. */
function masked(text: string): string {
  return text
    .replace(/\b\d+(?:ms|s)\b/g, '<age>')
    .replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<uid>')
    .replace(/\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}\S*/g, '<time>')
    .replace(/(LIVE|MERGED)-\d+/g, '$1')
    .replace(/ +$/gm, '')
    .replace('MCPServer in version "v1alpha1" cannot be handled as a MCPServer: ', '')
    .replace(/ is invalid:(?:\n\* .*)+/g, toldInOrder)
}

/** Normalizes errors: a server that skipped its cross-field rules adds a note; a single error is on one line. */
function toldInOrder(text: string): string {
  const lines = text.split('\n* ').slice(1)
  const wrong = lines.filter((line) => !line.includes('some validation rules were not checked')).toSorted()
  return wrong.length === 1 ? ` is invalid: ${wrong.join()}` : ` is invalid:\n* ${wrong.join('\n* ')}`
}

function kubectl(kubeconfig: string, args: readonly string[]): Ran {
  const binaries = buildBinaries(() => {})
  assert.ok(typeof binaries !== 'string', String(binaries))
  const { status, stdout, stderr } = spawnSync(binaries.kubectl, args, {
    encoding: 'utf8',
    env: { ...process.env, HOME: folder, KUBECONFIG: kubeconfig, KUBECTL_EXTERNAL_DIFF: 'diff -u' },
  })
  return { status, said: masked(stdout + stderr) }
}

/** Says it once to each side, which must answer alike. */
function alike(...args: readonly string[]): Ran {
  const [real, ours] = [kubectl(sides.cluster, args), kubectl(sides.files, args)]
  assert.deepEqual(ours, real, args.join(' '))
  return ours
}

function manifest(name: string, spec: object, more: object = {}): string {
  const file = path.join(folder, `${name}-${Object.keys(spec).join('')}.json`)
  const metadata = { name, namespace: 'default', ...more }
  writeFileSync(file, JSON.stringify({ apiVersion: 'plat.dev/v1alpha1', kind: 'MCPServer', metadata, spec }))
  return file
}

test('kubectl apply, diff, get, label, patch, wait and delete go as they go on a cluster', () => {
  // Shows D3.state.resourceAPI.enabled.
  const first = manifest('notes', { url: 'http://a.example/mcp' })
  const second = manifest('notes', { url: 'http://b.example/mcp', trust: 'trusted' })
  assert.match(alike('apply', '-f', first).said, /created/)
  assert.match(alike('apply', '-f', first).said, /unchanged/)
  assert.equal(kubectl(sides.files, ['diff', '-f', second]).status, 1)
  assert.match(alike('apply', '-f', second, '--dry-run=server').said, /configured/)
  assert.equal(alike('get', 'mcps', 'notes', '-o', 'jsonpath={.spec.url}').said, 'http://a.example/mcp')
  assert.match(alike('apply', '-f', second).said, /configured/)
  assert.equal(alike('get', 'mcpserver', 'notes', '-o', 'jsonpath={.spec}').status, 0)
  assert.match(alike('label', 'mcps', 'notes', 'team=red').said, /labeled/)
  assert.match(alike('annotate', 'mcps', 'notes', 'why=that').said, /annotated/)
  assert.match(alike('get', 'mcps', '-l', 'team in (red, blue)', '-o', 'name').said, /notes/)
  alike('get', 'mcps', '--field-selector', 'metadata.name=none')
  const operations = '[{"op": "replace", "path": "/spec/trust", "value": "untrusted"}]'
  assert.match(alike('patch', 'mcps', 'notes', '--type=json', '-p', operations).said, /patched/)
  // Whether kubectl adds `(no change)` depends on the second in which each side last wrote.
  for (const side of [sides.cluster, sides.files])
    assert.match(
      kubectl(side, ['patch', 'mcps', 'notes', '--type=merge', '-p', '{"spec": {"trust": null}}']).said,
      /patched/,
    )
  const status = '{"status": {"observedTools": 3}}'
  alike('patch', 'mcps', 'notes', '--type=merge', '--subresource=status', '-p', status)
  assert.match(alike('delete', 'mcps', 'notes', '--dry-run=server').said, /dry run/)
  assert.match(alike('delete', 'mcps', 'notes').said, /deleted/)
  assert.match(alike('get', 'mcps', 'notes').said, /NotFound/)
})

test('kubectl reports errors as on a cluster', () => {
  for (const spec of [{}, { url: 'ftp://x' }, { url: 'http://x', trust: 'maybe', timeoutSeconds: 0 }]) {
    assert.notEqual(alike('create', '-f', manifest('wrong', spec)).status, 0)
  }
  assert.match(
    alike('create', '-f', manifest('wrong', { url: 'http://x', ulr: 'x' })).said,
    /unknown field "spec\.ulr"/,
  )
  const good = manifest('twice', { url: 'http://x' })
  alike('create', '-f', good)
  assert.match(alike('create', '-f', good).said, /AlreadyExists/)
  assert.match(
    alike('patch', 'mcps', 'twice', '--type=merge', '-p', '{"spec": {"trust": "maybe"}}').said,
    /Unsupported value/,
  )
  alike('delete', 'mcps', '--all')
})

test('kubectl finds our kinds by every name, in tables of their columns, and explains their fields', () => {
  // Shows D2.kind.agent.shortNames, D2.kind.agent.category, D2.kind.server.shortNames.
  const metadata = { name: 'assistant', namespace: 'default' }
  const spec = { image: 'registry/a:1', tier: 'tier-1', policyRef: 'p' }
  const agent = { apiVersion: 'plat.dev/v1alpha1', kind: 'Agent', metadata, spec }
  const file = path.join(folder, 'agent.json')
  writeFileSync(file, JSON.stringify(agent))
  alike('create', '-f', file)
  alike('api-resources', '--api-group=plat.dev')
  alike('explain', 'agents.spec.tier')
  alike('explain', 'mcpservers.spec.auth', '--recursive')
  for (const name of ['agents', 'agent', 'ag', 'platagent', 'agents.plat.dev']) {
    assert.match(alike('get', name, '-o', 'name').said, /^agent\.plat\.dev\/assistant$/m)
  }
  assert.match(kubectl(sides.files, ['get', 'plat', '-A']).said, /agent\.plat\.dev\/assistant/)
  assert.match(kubectl(sides.files, ['get', 'agents']).said, /^NAME +TIER +PROFILE +READY +SOVEREIGN +POLICY +IMAGE/)
  assert.match(
    kubectl(sides.files, ['wait', 'agent/assistant', '--for=condition=Ready=false', '--timeout=60s']).said,
    /met/,
  )
  assert.match(kubectl(sides.files, ['describe', 'agent', 'assistant']).said, /Policy Ref: +p/)
  assert.match(kubectl(sides.files, ['auth', 'whoami']).said, /token:admin/)
  assert.match(kubectl(sides.files, ['apply', '--server-side', '-f', file]).said, /apply without --server-side/)
  alike('delete', '-f', file)
})
