import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { parseStrict } from '@plat/core'
import type { TestIssuer } from '@plat/testkit/identity'
import { type RfbServer, type RfbServerOptions, startRfbServer } from '@plat/testkit/rfb-server'
import { until } from '@plat/testkit/until'
import { AUDIENCE, provider } from '../../../testing/people.ts'
import { started, TOKEN } from '../../../testing/started.ts'
import { openViewer, type TestViewer } from './viewer.ts'

export const SESSION = 'default/assistant/s1'

interface Options {
  /** Over the configuration of the gateway. */
  readonly config?: object
  readonly liveView?: object
  readonly stepUp?: object
  readonly rfb?: RfbServerOptions
  /** Sessions that have called. */
  readonly sessions?: readonly string[]
  /** Further people with the role auditor. */
  readonly auditors?: readonly string[]
}

/** A gateway whose sessions have sandboxes that show a screen, and people with roles. */
export async function setUpViews(t: TestContext, options: Options = {}) {
  const { config = {}, liveView = {}, stepUp = {}, sessions = [SESSION], auditors = [] } = options
  const people = await provider(t)
  const rfb = await startRfbServer(options.rfb)
  t.after(() => rfb.close())
  const { gateway, issuer } = await started(t, {
    liveView: { enabled: true, endpointTemplate: `${rfb.url}/{namespace}/{session}`, ...liveView },
    adminAuth: {
      mode: 'both',
      roles: {
        viewer: ['user:viewer', 'user:auditor'],
        auditor: ['auditor', ...auditors].map((name) => `user:${name}`),
        admin: ['user:admin'],
      },
      namespaceRoles: { default: { auditor: ['user:here'] }, shop: { auditor: ['user:there'], admin: ['user:there'] } },
      oidc: { issuer: people.state.issuer, audience: AUDIENCE },
      stepUp,
    },
    ...config,
  })
  const { url, adminUrl } = gateway
  const bearer = async (user: string | null, more: object = {}) =>
    `Bearer ${user === null ? TOKEN : await people.token({ preferred_username: user, ...more })}`
  const admin = async (method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${TOKEN}`, ...(body && { 'content-type': 'application/json' }) }
    const response = await fetch(`${adminUrl}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) })
    return { status: response.status, body: JSON.parse((await response.text()) || '{}') }
  }
  const open: Open = async (mode, { user = null, session = SESSION, headers = {}, claims = {} } = {}) =>
    openViewer(`${adminUrl}/v1/sessions/${encodeURIComponent(session)}/view/${mode}`, {
      authorization: await bearer(user, claims),
      ...headers,
    })
  for (const session of sessions) await callOnce(url, issuer, session)
  await until(async () => (await admin('GET', '/v1/sessions')).body.items.length === sessions.length, 'the sessions')
  return { gateway, rfb, admin, open, bearer, people, ...asserting(open, rfb, admin) }
}

interface OpenOptions {
  /** Null: the static token. */
  readonly user?: string | null
  readonly session?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Of the token. */
  readonly claims?: object
}

type Open = (mode: string, options?: OpenOptions) => ReturnType<typeof openViewer>
type AdminCall = (method: string, path: string) => Promise<{ body: { items: readonly { rec: Rec }[] } }>
export type Rec = Readonly<Record<string, unknown>>

function asserting(open: Open, rfb: RfbServer, admin: AdminCall) {
  /** Opens a view that must begin, and passes its handshake. */
  const view = async (mode: string, options: OpenOptions = {}): Promise<TestViewer> => {
    const viewer = await open(mode, options)
    if (!('greet' in viewer)) assert.fail(JSON.stringify(viewer))
    await viewer.greet()
    return viewer
  }
  /** Opens a view that must be refused. */
  const refused = async (mode: string, options: OpenOptions = {}) => {
    const viewer = await open(mode, options)
    if ('greet' in viewer) assert.fail('the view was opened')
    return { status: viewer.status, error: viewer.body.error }
  }
  /** Records of views, once `count` have been written. */
  const records = async (count: number): Promise<readonly Rec[]> => {
    const all = async () => {
      const { items } = (await admin('GET', '/v1/audit/records?kind=admin&order=oldest')).body
      return items.map(({ rec }) => rec).filter(({ action }) => String(action).startsWith('view.'))
    }
    await until(async () => (await all()).length >= count, `${count} records of views`)
    return all()
  }
  const noViewers = () => until(() => rfb.viewers === 0, 'the end of the connection to the sandbox')
  return { view, refused, records, noViewers }
}

/** A session becomes known by a call; its upstream is unreachable. */
async function callOnce(url: string, issuer: TestIssuer, id: string): Promise<void> {
  const [namespace, agent, session] = id.split('/')
  const sub = `spiffe://plat.local/ns/${namespace}/agent/${agent}/session/${session}`
  const names = { plat_ns: namespace, plat_agent: agent, plat_session: session }
  const response = await fetch(`${url}/mcp/notes`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${issuer.token({ sub, scope: 'tools:notes', ...names })}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'read', arguments: {} } }),
  })
  parseStrict(Buffer.from(await response.arrayBuffer()))
}
