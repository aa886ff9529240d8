import assert from 'node:assert/strict'
import { test } from 'node:test'
import { may, type Role } from './roles.ts'

test('each role may do its own, deciders also see, admin may do all, and nobody reads the audit by chance', () => {
  const all: readonly Role[] = ['viewer', 'approver', 'auditor', 'admin', 'killswitch', 'audit-forwarder']
  const allowed = (role: Role) =>
    all.filter((wanted) => may({ by: 'user:ada', roles: new Set([role]), byToken: false }, wanted))
  assert.deepEqual(Object.fromEntries(all.map((role) => [role, allowed(role)])), {
    viewer: ['viewer'],
    approver: ['viewer', 'approver'],
    auditor: ['auditor'],
    admin: all,
    killswitch: ['viewer', 'killswitch'],
    'audit-forwarder': ['audit-forwarder'],
  })
  assert.equal(may({ by: 'user:ada', roles: new Set(), byToken: false }, 'viewer'), false)
})
