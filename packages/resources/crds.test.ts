import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { parse } from 'yaml'
import type { Kind } from './kinds/kinds.ts'
import { parseResource } from './manifest.ts'
import { validateStatus } from './validate.ts'

/** One field of a spec: texts that it takes, and texts that it refuses. */
interface Field {
  readonly takes: readonly string[]
  readonly refuses: readonly string[]
}

const HEAD: Readonly<Record<'Agent' | 'MCPServer', string>> = { Agent: 'image: i, tier: t', MCPServer: 'url: http://x' }

function parsed<K extends Kind>(kind: K, spec: string) {
  return parseResource(
    kind,
    `apiVersion: plat.dev/v1alpha1\nkind: ${kind}\nmetadata: {name: x, namespace: default}\nspec: {${spec}}\n`,
  )
}

/** Each text under its place in the spec, such as `env: [{name: A, valueFrom: {%}}]`. */
function check(kind: 'Agent' | 'MCPServer', place: string, { takes, refuses }: Field): void {
  for (const text of takes) {
    assert.deepEqual(parsed(kind, `${HEAD[kind]}, ${place.replace('%', text)}`).problems, [], text)
  }
  for (const text of refuses) {
    assert.notEqual(parsed(kind, `${HEAD[kind]}, ${place.replace('%', text)}`).problems.length, 0, text)
  }
}

const long = (length: number) => 'a'.repeat(length)

test('kinds, their plurals, their one version, and what they require', () => {
  // Shows D2.kind.agent.kind, D2.kind.agent.plural, D2.kind.agent.required, D2.kind.server.kind, D2.kind.server.plural.
  // Shows D2.kind.server.required, D2.kind.apiVersion.
  for (const [kind, plural] of Object.entries({ Agent: 'agents', MCPServer: 'mcpservers' })) {
    const definition = new URL(`../../deploy/crds/${plural}.plat.dev.yaml`, import.meta.url)
    const { metadata, spec } = parse(readFileSync(definition, 'utf8'))
    assert.deepEqual([metadata.name, spec.names.plural, spec.names.kind], [`${plural}.plat.dev`, plural, kind])
    const versions = spec.versions.map(({ name, served, storage }: Record<string, unknown>) => [name, served, storage])
    assert.deepEqual([spec.group, versions], ['plat.dev', [['v1alpha1', true, true]]])
  }
  const agents = parse(readFileSync(new URL('../../deploy/crds/agents.plat.dev.yaml', import.meta.url), 'utf8'))
  assert.deepEqual(agents.spec.versions[0].schema.openAPIV3Schema.properties.spec.required, ['image', 'tier'])
  assert.deepEqual(parsed('Agent', '').problems, [], 'a file needs neither: no sandbox is made of it')
  assert.match(parsed('MCPServer', '').problems.join(), /spec\.url: Required value/)
  for (const apiVersion of ['plat.dev/v1', 'v1alpha1', 'example.com/v1alpha1']) {
    const text = `apiVersion: ${apiVersion}\nkind: MCPServer\nmetadata: {name: x, namespace: default}\nspec: {url: http://x}\n`
    assert.notEqual(parseResource('MCPServer', text).problems.length, 0, apiVersion)
  }
})

test('both kinds live in a namespace', () => {
  // Shows D2.kind.agent.namespaced and D2.kind.server.namespaced.
  for (const kind of ['Agent', 'MCPServer'] as const) {
    const text = `apiVersion: plat.dev/v1alpha1\nkind: ${kind}\nmetadata: {name: x}\nspec: {${HEAD[kind]}}\n`
    assert.match(parseResource(kind, text).problems.join(), /metadata\.namespace: Required value/)
  }
})

test('entries of env name one source, in the form of its kind', () => {
  // Shows D2.env.name, D2.env.valueFrom.exactlyOne, D2.env.valueFrom.notWithValue.
  check('Agent', 'env: [%]', {
    takes: [
      '{name: A}',
      '{name: "a b~"}',
      '{name: A, value: ""}',
      '{name: A, value: "", valueFrom: {fieldRef: {fieldPath: p}}}',
    ],
    refuses: [
      '{value: x}',
      '{name: ""}',
      '{name: A=B}',
      '{name: "\\t"}',
      '{name: "\\u00e9"}',
      '{name: A, valueFrom: {}}',
      '{name: A, value: x, valueFrom: {fieldRef: {fieldPath: p}}}',
      '{name: A, valueFrom: {fieldRef: {fieldPath: p}, secretKeyRef: {key: k}}}',
    ],
  })
  // Shows D2.env.configMapKeyRef.key, D2.env.configMapKeyRef.name.
  // Shows D2.env.secretKeyRef.key, D2.env.secretKeyRef.name, D2.env.secretKeyRef.optional.
  for (const source of ['configMapKeyRef', 'secretKeyRef']) {
    check('Agent', `env: [{name: A, valueFrom: {${source}: {%}}}]`, {
      takes: ['key: k', 'key: k, name: nm', 'key: k, optional: true'],
      refuses: ['', 'name: nm', 'key: 1', 'key: k, name: 1', 'key: k, optional: maybe', 'key: k, other: x'],
    })
  }
  // Shows D2.env.fieldRef.fieldPath, D2.env.fieldRef.apiVersion.
  check('Agent', 'env: [{name: A, valueFrom: {fieldRef: {%}}}]', {
    takes: ['fieldPath: metadata.name', 'fieldPath: metadata.name, apiVersion: v1'],
    refuses: ['', 'apiVersion: v1', 'fieldPath: 1'],
  })
  const entry = parsed('Agent', `${HEAD.Agent}, env: [{name: A, valueFrom: {fieldRef: {fieldPath: p}}}]`).object
  assert.match(JSON.stringify(entry?.spec), /"apiVersion":"v1"/)
  // Shows D2.env.resourceFieldRef.resource, D2.env.resourceFieldRef.containerName.
  check('Agent', 'env: [{name: A, valueFrom: {resourceFieldRef: {%}}}]', {
    takes: ['resource: limits.cpu', 'resource: limits.cpu, containerName: c, divisor: 1Mi'],
    refuses: ['', 'containerName: c', 'resource: limits.cpu, containerName: 1', 'resource: limits.cpu, divisor: much'],
  })
  // Shows D2.env.fileKeyRef.volumeName, D2.env.fileKeyRef.path, D2.env.fileKeyRef.key, D2.env.fileKeyRef.optional.
  // Shows D2.env.fileKeyRef.relativePath and D2.env.fileKeyRef.keyLength.
  check('Agent', 'env: [{name: A, valueFrom: {fileKeyRef: {%}}}]', {
    takes: ['volumeName: v, path: a/b..c, key: k', `volumeName: v, path: p, key: ${long(128)}, optional: true`],
    refuses: [
      'path: p, key: k',
      'volumeName: v, key: k',
      'volumeName: v, path: p',
      'volumeName: v, path: /p, key: k',
      'volumeName: v, path: .., key: k',
      'volumeName: v, path: a/../b, key: k',
      'volumeName: v, path: a/.., key: k',
      `volumeName: v, path: p, key: ${long(129)}`,
    ],
  })
})

test('fields of an agent hold their lengths, words, ranges and patterns', () => {
  // Shows D2.tools.name, D2.tools.name.pattern.
  check('Agent', 'tools: [%]', {
    takes: ['{name: a}', `{name: ${long(63)}}`, '{name: a-b-1}'],
    refuses: ['{}', `{name: ${long(64)}}`, '{name: A}', '{name: -a}', '{name: a-}', '{name: a.b}', '{name: ""}'],
  })
  // Shows D2.budget.currency.pattern.
  check('Agent', 'budget: {currency: %}', { takes: ['EUR'], refuses: ['eur', 'EURO', 'E1R', '""'] })
  const budget = parsed('Agent', `${HEAD.Agent}, budget: {perDayUSD: 1}`).object?.spec
  // Shows D2.budget.currency.default.
  assert.deepEqual(budget, { image: 'i', tier: 't', idleTimeout: '15m', budget: { perDayUSD: 1, currency: 'USD' } })
  // Shows D2.model.provider.max, D2.model.endpoint.pattern.
  check('Agent', 'model: {provider: %}', { takes: [long(128)], refuses: [long(129)] })
  check('Agent', 'model: {endpoint: "%"}', {
    takes: ['http://host', 'https://host:1/v1?x'],
    refuses: ['ftp://host', 'host', 'http://', 'http://@host', 'http://?x'],
  })
  // Shows D2.model.providerTools.max, D2.model.fallbacks.max.
  const many = (count: number, item: string) => Array.from({ length: count }, () => item).join()
  check('Agent', 'model: {providerTools: [%]}', { takes: [many(16, 'a')], refuses: [many(17, 'a')] })
  check('Agent', 'model: {fallbacks: [%]}', {
    takes: [many(8, '{endpoint: "http://x"}')],
    refuses: [many(9, '{endpoint: "http://x"}'), '{}', '{endpoint: ""}'],
  })
  // Shows D2.a2a.trust.default, D2.a2a.version.default.
  const exposed = parsed('Agent', `${HEAD.Agent}, a2a: {expose: true, endpoint: "http://x"}`).object?.spec
  assert.deepEqual([exposed?.a2a?.trust, exposed?.a2a?.version], ['trusted', '1.0.0'])
})

test('an agent that breaks a rule across fields is refused', () => {
  // Shows D2.a2a.expose.requiresEndpoint, D2.error.validation.exposeWithoutEndpoint.
  check('Agent', 'a2a: {%}', {
    takes: ['expose: false', 'expose: true, endpoint: "http://x"'],
    refuses: ['endpoint: "http://x"', 'expose: true', 'expose: true, endpoint: ""'],
  })
  // Shows D2.model.provider.ctxengine.adapter, D2.error.validation.ctxengineAdapter.
  check('Agent', 'model: {provider: ctxengine%}', {
    takes: ['', ', adapter: openai'],
    refuses: [', adapter: gemini', ', adapter: anthropic'],
  })
})

test('fields of an MCP server hold their words, ranges and patterns', () => {
  // Shows D2.server.url.pattern.
  for (const [url, good] of Object.entries({
    'http://h': true,
    'https://h/p@q': true,
    'http:///': false,
    'http://@h': false,
    'ws://h': false,
  })) {
    assert.equal(parsed('MCPServer', `url: "${url}"`).problems.length === 0, good, url)
  }
  // Shows D2.server.transport, D2.server.transport.onlyStreamableHttp.
  check('MCPServer', 'transport: %', { takes: ['streamable-http'], refuses: ['sse', 'stdio', '""'] })
  const filled = parsed('MCPServer', HEAD.MCPServer).object?.spec
  assert.equal(filled?.transport, 'streamable-http')
  // Shows D2.server.trust.default and D2.server.dataClass.default.
  assert.deepEqual([filled?.trust, filled?.dataClass], ['untrusted', 'internal'])
  check('MCPServer', 'trust: %', { takes: ['trusted', 'untrusted'], refuses: ['some'] })
  check('MCPServer', 'dataClass: %', {
    takes: ['public', 'internal', 'confidential', 'restricted'],
    refuses: ['secret'],
  })
  check('MCPServer', 'timeoutSeconds: %', { takes: ['1', '3600'], refuses: ['0', '3601', '1.5'] })
  check('MCPServer', 'jurisdiction: %', { takes: ['DE', 'us-ca', 'DE-BY-1'], refuses: ['DEU', 'D', 'DE-', 'DE_BY'] })
  check('MCPServer', 'caBundleRef: {%}', {
    takes: ['name: nm, key: k'],
    refuses: ['name: nm', 'key: k', 'name: "", key: k', 'name: nm, key: ""'],
  })
  const label = (name: string) => ({
    takes: [`${name}: [a]`, `${name}: []`],
    refuses: [`${name}: [${Array.from({ length: 17 }, () => 'a').join()}]`, `${name}: a`],
  })
  for (const name of ['taints', 'clearTaints', 'sinks']) check('MCPServer', 'toolLabels: {read: {%}}', label(name))
  check('MCPServer', 'toolPins: {%}', {
    takes: ['mode: learn', "mode: 'off'", 'mode: enforce, onChange: approve, allowUnpinned: true, pins: {a: b}'],
    refuses: ['mode: off', 'mode: strict', 'onChange: refuse', 'allowUnpinned: 1', 'pins: [a]', 'pin: {}'],
  })
})

test('a status takes standard conditions, whole and once a type', () => {
  // Shows D2.condition.type, D2.condition.status, D2.condition.reason, D2.condition.message.
  const good = {
    type: 'example.com/Ready',
    status: 'True',
    reason: 'Because',
    message: '',
    lastTransitionTime: '2026-01-01T00:00:00Z',
    observedGeneration: 0,
  }
  const problems = (conditions: readonly object[]) => validateStatus('Agent', { conditions }).length
  assert.equal(problems([good]), 0)
  assert.equal(problems([{ ...good, type: long(316), reason: long(1024), message: long(32_768) }]), 0)
  for (const key of ['type', 'status', 'reason', 'message', 'lastTransitionTime']) {
    assert.equal(problems([Object.fromEntries(Object.entries(good).filter(([name]) => name !== key))]), 1, key)
  }
  const bad = {
    type: long(317),
    status: 'Maybe',
    reason: '',
    message: long(32_769),
    lastTransitionTime: 'yesterday',
    observedGeneration: -1,
  }
  for (const [key, value] of Object.entries(bad)) assert.equal(problems([{ ...good, [key]: value }]), 1, key)
  const also = {
    type: ['', 'Not Ready', 'a/b/c', '/Ready', 'Upper.example/Ready'],
    reason: [long(1025), 'not camel', '1st', 'dash-ed'],
    lastTransitionTime: ['2026-02-30T00:00:00Z', '2026-01-01', '2026-01-01T25:00:00Z', '2026-01-01T00:00:00'],
  }
  for (const [key, values] of Object.entries(also)) {
    for (const value of values) assert.equal(problems([{ ...good, [key]: value }]), 1, `${key}: ${value}`)
  }
  assert.equal(problems([good, { ...good, status: 'False' }]), 1)
})
