import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { ALL_ROLES } from '../../../admin/roles.ts'

/**
 * A tenant of the tests. Others can guess the names of its namespace, agent, session and server; nothing but the tenant ever sends its mark, which is in all else
 * that the tenant chooses.
 */
export interface TestTenant {
  readonly name: string
  readonly namespace: string
  readonly mark: string
}

export const RED: TestTenant = { name: 'red', namespace: 'red-1', mark: 'crimson' }
export const BLUE: TestTenant = { name: 'blue', namespace: 'blue-1', mark: 'azure' }
/** A tenant whose name is the beginning of another one's, with a namespace of that one's name. */
export const PREFIX: TestTenant = { name: 're', namespace: 'red', mark: 'cerise' }

/** No tenant. */
export const FREE: TestTenant = { name: '', namespace: 'free', mark: 'free' }

export function agentOf({ name }: TestTenant): string {
  return `${name || 'free'}-agent`
}

export const listOf = (tenants: readonly TestTenant[]) =>
  JSON.stringify({ tenants: tenants.map(({ name, namespace }) => ({ name, namespaces: [namespace] })) })

/** Servers of each tenant; those of `red` and of no tenant are shared with the namespaces of all. */
export function serversFor(tenants: readonly TestTenant[], url: string): string {
  const all = [...tenants.map(({ namespace }) => namespace), 'free']
  const entry = { url, implicit: false, trust: 'trusted', dataClass: 'internal', auth: { type: 'none' } }
  const own = tenants.map(
    ({ name, namespace }) => [`${namespace}/${name}-notes`, { ...entry, namespaces: all }] as const,
  )
  const servers = { ...Object.fromEntries(own), 'free/shared': { ...entry, namespaces: all } }
  return JSON.stringify({ version: 1, servers, bindings: {}, agentWeb: {} })
}

export function policiesFor(tenants: readonly TestTenant[]): string {
  const rules = [
    { name: 'ask', action: 'require_approval', match: { tools: ['pay'] } },
    { name: 'no', action: 'deny', match: { tools: ['drop'] } },
    { name: 'all', action: 'allow' },
  ]
  return policiesFile(
    [...tenants, FREE].map((one) =>
      testPolicy({
        name: `${one.namespace}/${one.mark}-policy`,
        namespace: one.namespace,
        agents: [agentOf(one)],
        rules,
      }),
    ),
  )
}

export function budgetsFor(tenants: readonly TestTenant[]): string {
  const budgets = tenants.map(({ namespace, mark }) => {
    const source = `BudgetPolicy/${namespace}/${mark}-budget`
    return {
      id: `${source}/day`,
      source,
      match: { namespaces: [namespace] },
      window: 'day',
      capMicros: 1e9,
      alerts: [50],
    }
  })
  const each = 'BudgetPolicy/plat-system/people'
  const people = {
    id: `${each}/user/day`,
    source: each,
    match: {},
    per: 'user',
    window: 'day',
    capMicros: 100_000,
    alerts: [100],
  }
  return JSON.stringify({ version: 1, currency: 'USD', budgets: [...budgets, people] })
}

/** A tenth of a cent for each call. */
export function pricesFor(tenants: readonly TestTenant[]): string {
  const tools = Object.fromEntries(
    tenants.map(({ name, namespace }) => [`${namespace}/${name}-notes/*`, { perCall: '0.001' }]),
  )
  return JSON.stringify({ version: 1, currency: 'USD', id: 'p', models: {}, tools })
}

export function agentsFor(tenants: readonly TestTenant[], endpoint: string): string {
  const least = { description: '', allowedCallers: ['*/*'], skills: [], streaming: false, timeoutSeconds: 0 }
  const agents = [...tenants, FREE].map((one) => [
    `${one.namespace}/${agentOf(one)}`,
    { ...least, endpoint, trust: 'trusted', version: '1' },
  ])
  return JSON.stringify({ version: 1, agents: Object.fromEntries(agents) })
}

/** Roles of people whose names begin with the tenant: `red-auditor` has the role auditor in tenant red. */
export function rolesOf(prefix: string): Record<string, string[]> {
  return Object.fromEntries(ALL_ROLES.map((role) => [role, [`user:${prefix}-${role}`]]))
}
