import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Manifest, parseResource } from '@plat/resources'
import { renderCredentials } from './auth.ts'
import type { Declared } from './declared.ts'
import { renderUpstreams } from './upstreams.ts'

function server(spec: string): { readonly object: Manifest<'MCPServer'> | null; readonly problems: readonly string[] } {
  const head = 'apiVersion: plat.dev/v1alpha1\nkind: MCPServer\nmetadata: { name: files, namespace: default }\n'
  return parseResource('MCPServer', `${head}spec: ${spec}\n`)
}

function declared(spec: string, home: string | null): Declared {
  const { object } = server(spec)
  assert.ok(object !== null)
  const none = { agents: [], policies: [], budgets: [], memory: [], sovereignty: [], tiers: [], cedar: null }
  return { ...none, servers: [object], home, currency: 'USD', bundles: { texts: new Map(), withheld: new Map() } }
}

const SPEC = '{ stdio: { command: server, env: [{ name: KEY, valueFrom: { secretKeyRef: { name: a, key: b } } }] } }'

test('a server has a url or a program, and a variable a value or a Secret', () => {
  // Shows D2.server.stdio, D2.kind.server.required.
  assert.deepEqual(server(SPEC).problems, [])
  for (const wrong of ['{ url: "http://x", stdio: { command: a } }', '{ trust: trusted }'])
    assert.match(server(wrong).problems.join(), /exactly one of url and stdio is required/)
  for (const wrong of ['{ name: A }', '{ name: A, value: x, valueFrom: { secretKeyRef: { name: a, key: b } } }'])
    assert.match(
      server(`{ stdio: { command: a, env: [${wrong}] } }`).problems.join(),
      /exactly one of value and valueFrom/,
    )
})

test('a cluster whose operator runs no stdio servers refuses them, and says what to do', () => {
  // Shows D2.server.stdio.cluster.
  const { file, refused } = renderUpstreams(declared(SPEC, 'plat-system'))
  assert.deepEqual(file.servers, {})
  assert.deepEqual(refused, [
    'MCPServer default/files stdio: needs an operator with -stdio-image (chart: operator.stdioServers.enabled); or run the server in a Deployment with Streamable HTTP, and set url',
  ])
})

test('the rendered file names neither the program nor its Secrets, and leads to no host', () => {
  // Shows D2.server.stdio.env.
  const on = declared(SPEC, null)
  const { file, refused } = renderUpstreams(on)
  assert.deepEqual(refused, [])
  const entry = file.servers['default/files']
  assert.deepEqual([entry?.stdio, entry?.url], [true, 'http://files.default.stdio.invalid/default/files'])
  assert.ok(!JSON.stringify(file).includes('command'))
  const secrets = { texts: new Map([['default/a/b', 'hunter2']]), withheld: new Map() }
  assert.equal(renderCredentials(on.servers, secrets).files.size, 0)
})
