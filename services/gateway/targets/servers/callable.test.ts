import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Snapshots } from '../../call/index.ts'
import { testIdentity } from '../../call/testing/identity.ts'
import { createCallable } from './callable.ts'
import { buildRegistry } from './registry.ts'
import { registrySlot } from './stage.ts'

const servers = { notes: 'http://127.0.0.1:1', files: 'http://127.0.0.1:2', other: 'http://127.0.0.1:3' }

test('a caller may use the servers of its scopes that exist; one that is removed is gone at once', () => {
  const snapshots = new Snapshots()
  const callable = createCallable()
  const caller = { ...testIdentity, scopes: new Set(['tools:notes', 'tools:gone', 'tools:files', 'models:small']) }
  snapshots.publish(registrySlot, buildRegistry(null, servers))
  const names = callable(snapshots.current, caller)
  assert.deepEqual(names, ['files', 'notes'])
  assert.equal(callable(snapshots.current, caller), names, 'the same list')
  const { notes } = servers
  snapshots.publish(registrySlot, buildRegistry(null, { notes }))
  assert.deepEqual(callable(snapshots.current, caller), ['notes'])
  assert.deepEqual(callable(snapshots.current, { ...caller, scopes: new Set() }), [])
})

test('a server for which the issuer of a token requires another scope is not listed', () => {
  const snapshots = new Snapshots()
  snapshots.publish(registrySlot, buildRegistry(null, servers))
  const callable = createCallable((_, server) => (server === 'files' ? 'p/tools:files' : null))
  const caller = { ...testIdentity, scopes: new Set(['tools:notes', 'tools:files']) }
  assert.deepEqual(callable(snapshots.current, caller), ['notes'])
})
