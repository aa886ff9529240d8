import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ALL_ROLES, may, mayAnywhere, principalOf, type Role } from './roles.ts'

const unprivileged = {
  by: 'user:ada',
  person: [],
  groups: [],
  roles: new Set<Role>(),
  namespaceRoles: new Map<string, Set<Role>>(),
  byToken: false,
}

test('each role has its permissions, approver and killswitch may also view, admin has all, and only auditor reads the audit', () => {
  const allowed = (role: Role) =>
    ALL_ROLES.filter((wanted) => may({ ...unprivileged, roles: new Set([role]) }, wanted, null))
  assert.deepEqual(Object.fromEntries(ALL_ROLES.map((role) => [role, allowed(role)])), {
    viewer: ['viewer'],
    approver: ['viewer', 'approver'],
    auditor: ['auditor'],
    admin: ALL_ROLES,
    killswitch: ['viewer', 'killswitch'],
    'audit-forwarder': ['audit-forwarder'],
  })
  assert.equal(may(unprivileged, 'viewer', null), false)
})

test('a role in a namespace holds there, in no other and not everywhere; one that holds everywhere holds there too', () => {
  const grants = {
    people: {},
    roles: { viewer: ['staff'] },
    namespaceRoles: { shop: { approver: ['shop-team', 'user:ada'] }, bank: { admin: ['bank-team'] } },
  }
  const ada = principalOf({ user: 'ada', groups: ['staff', 'user:bob'] }, grants)
  for (const [role, namespace, expected] of [
    ['approver', 'shop', true],
    ['approver', 'bank', false],
    ['approver', null, false],
    ['viewer', 'bank', true],
    ['viewer', null, true],
    ['killswitch', 'shop', false],
  ] as const) {
    assert.equal(may(ada, role, namespace), expected, `${role} in ${namespace}`)
  }
  assert.deepEqual([mayAnywhere(ada, 'approver'), mayAnywhere(ada, 'killswitch')], [true, false])
  const bob = principalOf({ user: 'bob', groups: ['bank-team', 'constructor'] }, grants)
  assert.deepEqual(
    [may(bob, 'killswitch', 'bank'), may(bob, 'viewer', 'shop'), mayAnywhere(bob, 'auditor')],
    [true, false, true],
  )
})
