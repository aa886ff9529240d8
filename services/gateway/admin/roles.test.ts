import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noTenancy, type Tenancy } from '../call/index.ts'
import { ALL_ROLES, homeOf, may, mayInTenant, principalOf, type Role, tenantsOf } from './roles.ts'

const unprivileged = {
  by: 'user:ada',
  person: [],
  groups: [],
  roles: new Set<Role>(),
  namespaceRoles: new Map<string, Set<Role>>(),
  tenantRoles: new Map<string, Set<Role>>(),
  tenancy: noTenancy,
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
  const anywhere = (who: typeof ada, role: Role) => tenantsOf(who, role)?.size !== 0
  assert.deepEqual([anywhere(ada, 'approver'), anywhere(ada, 'killswitch')], [true, false])
  const bob = principalOf({ user: 'bob', groups: ['bank-team', 'constructor'] }, grants)
  assert.deepEqual(
    [may(bob, 'killswitch', 'bank'), may(bob, 'viewer', 'shop'), anywhere(bob, 'auditor')],
    [true, false, true],
  )
})

/** Namespace `red-1` of tenant `red`, `red` of `re`, and `free` of none. */
const tenancy: Tenancy = {
  isOn: true,
  of: (namespace) =>
    new Map([
      ['red-1', 'red'],
      ['red', 're'],
      ['blue-1', 'blue'],
    ]).get(namespace) ?? '',
  has: (tenant) => ['red', 're', 'blue'].includes(tenant),
}

test('a role in a tenant holds in its namespaces and nowhere else, whatever the names have in common', () => {
  const grants = {
    ...{ people: {}, roles: {}, tenancy },
    namespaceRoles: { 'blue-1': { viewer: ['user:eve'] } },
    tenantRoles: { red: { auditor: ['red-team'], admin: ['user:root'] }, gone: { admin: ['user:ghost', 'user:eve'] } },
  }
  const red = principalOf({ user: 'ada', groups: ['red-team'] }, grants)
  const seen = (who: typeof red, role: Role) =>
    ['red-1', 'red', 'blue-1', 'free', null].filter((one) => may(who, role, one))
  assert.deepEqual(seen(red, 'auditor'), ['red-1'])
  assert.deepEqual(seen(red, 'viewer'), [])
  assert.deepEqual(seen(principalOf({ user: 'root', groups: [] }, grants), 'killswitch'), ['red-1'])
  assert.deepEqual([mayInTenant(red, 'auditor', 'red'), mayInTenant(red, 'auditor', 're')], [true, false])
  assert.deepEqual([...(tenantsOf(red, 'auditor') ?? [])], ['red'])
  // A tenant that is no longer listed grants nothing.
  const ghost = principalOf({ user: 'ghost', groups: [] }, grants)
  assert.deepEqual([seen(ghost, 'viewer'), [...(tenantsOf(ghost, 'viewer') ?? [])], homeOf(ghost)], [[], [], ''])
  const eve = principalOf({ user: 'eve', groups: [] }, grants)
  assert.deepEqual([seen(eve, 'viewer'), [...(tenantsOf(eve, 'viewer') ?? [])]], [['blue-1'], ['blue']])
})

test('what a tenant made stays its own when its namespace is moved to another one', () => {
  const grants = {
    ...{ people: {}, roles: { viewer: ['fleet'] }, tenancy },
    namespaceRoles: { 'blue-1': { viewer: ['user:blue-1'] } },
    tenantRoles: { red: { viewer: ['user:red'] }, blue: { viewer: ['user:blue'] } },
  }
  const sees = (user: string, groups: string[] = []) => {
    const who = principalOf({ user, groups }, grants)
    return [may(who, 'viewer', 'blue-1', 'red'), may(who, 'viewer', 'blue-1', 'blue'), may(who, 'viewer', 'blue-1')]
  }
  assert.deepEqual(sees('red'), [true, false, false])
  assert.deepEqual(sees('blue'), [false, true, true])
  assert.deepEqual(sees('blue-1'), [false, true, true])
  assert.deepEqual(sees('any', ['fleet']), [true, true, true])
})

test('actions are recorded in the ledger of the only tenant in which a caller has roles, else in that of the fleet', () => {
  const tenantRoles = { red: { viewer: ['r', 'rb'] }, blue: { viewer: ['rb'] } }
  const grants = {
    ...{ people: {}, roles: { viewer: ['f'] }, tenancy, tenantRoles },
    namespaceRoles: { 'red-1': { viewer: ['r', 'r1'] }, free: { viewer: ['n'] } },
  }
  const home = (...groups: string[]) => homeOf(principalOf({ user: 'x', groups }, grants))
  assert.deepEqual(
    [home('r'), home('r1'), home('rb'), home('f', 'r'), home('n'), home('n', 'r'), home()],
    ['red', 'red', '', '', '', '', ''],
  )
})
