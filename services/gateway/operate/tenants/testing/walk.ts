import type { AdminRoute } from '../../../admin/routes.ts'
import type { TestTenant } from './files.ts'
import type { Owned } from './populate.ts'
import type { Reply } from './requests.ts'
import type { TwoTenants } from './two-tenants.ts'

/** One request of a walk. */
export interface WalkedRequest {
  /** `GET /v1/approvals/{id}`. */
  readonly operation: string
  /** `GET /v1/approvals/0197…?tenant=red`. */
  readonly route: string
  readonly body: unknown
  /** Names an id of another kind than the route's. */
  readonly isOdd: boolean
}

/** Operations that end the gateway's other work or say nothing about tenants. */
const LEFT_OUT: ReadonlySet<string> = new Set(['GET /debug/profile', 'GET /debug/heap'])

/** Bodies that name what is of a tenant; other operations get an empty one. */
function bodiesFor({ namespace, name }: TestTenant, owned: Owned): Partial<Record<AdminRoute, readonly object[]>> {
  const agent = `${namespace}/${name}-agent`
  const policies = { version: 1, generation: 1, revision: 'r', policies: [] }
  const targets = [
    { session: owned.session },
    { agent },
    { namespace },
    { tenant: name },
    { all: true },
    { user: 'ada' },
    { jti: 'j' },
  ]
  const revoked = targets.map((target) => ({ target }))
  return {
    'POST /v1/revocations': revoked,
    'POST /v1/revocations/preview': revoked,
    'POST /v1/evidence': [{ namespace }, {}, { namespace, session: owned.session }, { session: owned.session }],
    'POST /v1/audit/holds': [{ target: `session:${owned.session}` }, { target: '0..1' }],
    'POST /v1/policies/simulate': [{ policies }, { policies, agent }],
    'POST /v1/policies/try': [{ namespace, agent: `${name}-agent`, server: `${name}-notes`, tool: 'look' }],
    'POST /v1/approvals/:id/approve': [{}, { scope: 'session' }],
  }
}

/** Values of the parameters of paths: every id that the tenant has. */
function valuesOf(parameter: string, { namespace, name }: TestTenant, owned: Owned): readonly string[] {
  const ids = [owned.approval, owned.session, owned.sessionApproval, owned.revocation, owned.hold, owned.evidence]
  const values: Readonly<Record<string, readonly string[]>> = {
    id: ids.map(encodeURIComponent),
    namespace: [namespace],
    name: [`${name}-notes`],
    seq: ['0', '1', String(owned.records)],
    user: ['ada'],
  }
  return values[parameter] ?? ['x']
}

/**
 * Returns requests for every operation of the gateway's OpenAPI document that name what is of `victim`: in the path, in the query and in the
 * body. An operation that is added to the document is walked as well.
 */
export async function requestsAt(
  { admin }: TwoTenants,
  victim: TestTenant,
  owned: Owned,
): Promise<readonly WalkedRequest[]> {
  const { body: document } = await admin('GET /openapi.json')
  const bodies: Partial<Record<string, readonly object[]>> = bodiesFor(victim, owned)
  const queries = ['', `?tenant=${victim.name}`]
  const ofLists = [`?namespace=${victim.namespace}&cursor=${owned.cursor}`]
  const requests: WalkedRequest[] = []
  for (const [path, operations] of Object.entries(document.paths)) {
    for (const method of Object.keys(Object(operations))) {
      const operation = `${method.toUpperCase()} ${path}`
      if (LEFT_OUT.has(operation)) continue
      const row = operation.replaceAll(/\{(\w+)\}/g, ':$1')
      for (const route of pathsOf(path, victim, owned))
        for (const query of path.includes('{') ? queries : [...queries, ...ofLists])
          for (const body of method === 'post' ? (bodies[row] ?? [{}]) : [null])
            requests.push({
              operation,
              route: `${method.toUpperCase()} ${route}${query}`,
              body,
              isOdd: isOdd(route, owned),
            })
    }
  }
  return requests
}

/** Whether a path names an id of another kind than its own. */
function isOdd(path: string, owned: Owned): boolean {
  const kinds: readonly (readonly [prefix: string, id: string])[] = [
    ['/v1/approvals/', owned.approval],
    ['/v1/sessions/', encodeURIComponent(owned.session)],
    ['/v1/session-approvals/', owned.sessionApproval],
    ['/v1/revocations/', owned.revocation],
    ['/v1/audit/holds/', owned.hold],
    ['/v1/evidence/', owned.evidence],
  ]
  return kinds.some(([prefix, id]) => path.startsWith(prefix) && !path.includes(id))
}

function pathsOf(path: string, victim: TestTenant, owned: Owned): readonly string[] {
  const parameter = /\{(\w+)\}/.exec(path)
  if (parameter === null) return [path]
  const [whole, name = ''] = parameter
  return valuesOf(name, victim, owned).flatMap((value) =>
    pathsOf(
      path.replace(whole, () => value),
      victim,
      owned,
    ),
  )
}

/** Returns why a response shows something of a tenant to another one, or null. What the request itself says is no secret. */
export function leakIn({ status, text }: Reply, { route, body }: WalkedRequest, victim: TestTenant): string | null {
  if (status >= 500 && status !== 503) return `${route}: ${status} ${text}`
  const request = `${decodeURIComponent(route)} ${JSON.stringify(body)}`
  if (!request.includes(victim.mark) && text.includes(victim.mark))
    return `${route} ${JSON.stringify(body)} shows ${victim.mark}: ${text}`
  // Ids of objects are in the request; a success means that there is such an object.
  return null
}
