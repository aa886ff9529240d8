import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isObject } from '@plat/core'
import { checkGatewayConfig } from '@plat/gateway/config'
import { computedDefaults, entryDefaults, gatewayDefaults, keysBeyondContract } from './gateway-defaults.ts'
import { requirements } from './requirements.ts'

/** Required members of gateway.json. */
const REQUIRED = {
  policyFile: '/policies.json',
  auditPath: '/audit.jsonl',
  upstreamsFile: '/upstreams.json',
  identity: { publicKeyFiles: ['/pub.pem'] },
}

/** The file with its defaults filled in. */
function filled(own: object): unknown {
  return checkGatewayConfig(JSON.stringify({ ...REQUIRED, ...own }), { exists: () => true }).config
}

function memberAt(value: unknown, path: string): unknown {
  return path.split('.').reduce((inner: unknown, key) => Object(inner)[key], value)
}

/** Paths of all values that are not objects with members, or that `named` holds. */
function leavesOf(value: unknown, named: ReadonlySet<string>, path = ''): readonly string[] {
  const inside = isObject(value)
  const members = inside ? Object.entries(value) : []
  if (named.has(path) || members.length === 0) return [path]
  return members.flatMap(([key, member]) => leavesOf(member, named, path === '' ? key : `${path}.${key}`))
}

test('every key of gateway.json has the default that the contract gives it', () => {
  // Shows D3.default.keys.
  const config = filled({})
  const actual = Object.fromEntries(Object.keys(gatewayDefaults).map((key) => [key, memberAt(config, key)]))
  assert.deepEqual(actual, gatewayDefaults)
})

test('the table of defaults names every key of gateway.json', () => {
  // Shows D3.default.complete.
  const required = ['policyFile', 'auditPath', 'upstreamsFile', 'identity.publicKeyFiles']
  const known = new Set([...Object.keys(gatewayDefaults), ...computedDefaults, ...keysBeyondContract, ...required])
  const leaves = leavesOf(filled({}), known)
  assert.deepEqual(
    leaves.filter((path) => !known.has(path)),
    [],
  )
  assert.deepEqual([...known].filter((path) => !leaves.includes(path)).sort(), [])
})

test('an entry of a list or map has the defaults that the contract gives it', () => {
  // Shows D3.default.entries.
  for (const { file, at, defaults } of entryDefaults) {
    const entry = memberAt(filled(file), at)
    const actual = Object.fromEntries(Object.keys(defaults).map((key) => [key, memberAt(entry, key)]))
    assert.deepEqual(actual, defaults, at)
  }
})

test('every computed default has a row of the contract, which the test of its feature shows', () => {
  const prefix = 'D3.default.computed.'
  const rows = requirements.filter(({ id }) => id.startsWith(prefix)).map(({ id }) => id.slice(prefix.length))
  assert.deepEqual(rows.toSorted(), computedDefaults.toSorted())
})
