import assert from 'node:assert/strict'
import {
  at,
  created,
  type Face,
  GROUP,
  list,
  MERGE,
  names,
  POLICIES,
  type Promised,
  SERVERS,
  server,
  TABLE,
} from './face.ts'

export function lists(promise: Promised): void {
  promise('a list is sorted, and selectors choose from it', async (face) => {
    for (const name of ['c', 'a', 'b'])
      await created(face, server(name, {}, { labels: { app: name, [`only-${name}`]: '' } }))
    const { body } = await face.ask('GET', SERVERS)
    assert.deepEqual([at(body, 'kind'), at(body, 'apiVersion')], ['MCPServerList', 'plat.dev/v1alpha1'])
    assert.match(String(at(body, 'metadata', 'resourceVersion')), /^\d+$/)
    assert.equal(at(body, 'items', 0, 'kind'), 'MCPServer')
    const chosen = async (query: object) =>
      names((await face.ask('GET', `${GROUP}/mcpservers?${new URLSearchParams({ ...query })}`)).body)
    assert.deepEqual(await chosen({}), ['a', 'b', 'c'])
    assert.deepEqual(await chosen({ labelSelector: 'app=b' }), ['b'])
    assert.deepEqual(await chosen({ labelSelector: 'app!=b' }), ['a', 'c'])
    assert.deepEqual(await chosen({ labelSelector: 'app in (a, c),app notin (c)' }), ['a'])
    assert.deepEqual(await chosen({ labelSelector: 'only-a' }), ['a'])
    assert.deepEqual(await chosen({ labelSelector: '!only-a' }), ['b', 'c'])
    assert.deepEqual(await chosen({ labelSelector: 'other!=x' }), ['a', 'b', 'c'])
    assert.deepEqual(await chosen({ fieldSelector: 'metadata.name=c' }), ['c'])
    assert.deepEqual(await chosen({ fieldSelector: 'metadata.name!=c,metadata.namespace=default' }), ['a', 'b'])
    for (const wrong of ['labelSelector=a%20b', 'labelSelector=a%3D(', 'fieldSelector=spec.url%3Dx']) {
      assert.equal((await face.ask('GET', `${SERVERS}?${wrong}`)).status, 400, wrong)
    }
  })

  promise('a list comes in pages, each of which says where the next begins', async (face) => {
    for (const name of ['a', 'b', 'c']) await created(face, server(name))
    const first = await face.ask('GET', `${SERVERS}?limit=2`)
    assert.deepEqual(names(first.body), ['a', 'b'])
    assert.equal(at(first.body, 'metadata', 'remainingItemCount'), 1)
    const next = String(at(first.body, 'metadata', 'continue'))
    const second = await face.ask('GET', `${SERVERS}?limit=2&continue=${encodeURIComponent(next)}`)
    assert.deepEqual([names(second.body), at(second.body, 'metadata', 'continue') ?? ''], [['c'], ''])
    const at0 = (body: unknown) => at(body, 'metadata', 'resourceVersion')
    assert.equal(at0(second.body), at0(first.body))
    assert.equal((await face.ask('GET', `${SERVERS}?limit=2&continue=none`)).status, 400)
  })
}

export function tables(promise: Promised): void {
  promise('kubectl gets the columns of the kind as a table', async (face) => {
    await created(face, server('a', { auth: { type: 'none' } }))
    const condition = { reason: 'R', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' }
    const status = { observedTools: 7, conditions: [{ type: 'Ready', status: 'True', ...condition }] }
    await face.ask('PATCH', `${SERVERS}/a/status`, { body: { status }, type: MERGE })
    const { body } = await face.ask('GET', SERVERS, { accept: TABLE })
    assert.deepEqual([at(body, 'kind'), at(body, 'apiVersion')], ['Table', 'meta.k8s.io/v1'])
    const columns = list(at(body, 'columnDefinitions')).map((column) => [at(column, 'name'), at(column, 'type')])
    const text = ['Name', 'URL', 'Auth', 'Trust', 'Ready', 'Pinned'].map((column) => [column, 'string'])
    assert.deepEqual(columns, [...text, ['Tools', 'integer'], ['Age', 'date']])
    const cells = list(at(body, 'rows', 0, 'cells'))
    assert.deepEqual(cells.slice(0, 7), ['a', 'http://a.example/mcp', 'none', 'untrusted', 'True', null, 7])
    assert.match(String(cells[7]), /^\d+[a-z]/)
    assert.equal(at(body, 'rows', 0, 'object', 'kind'), 'PartialObjectMetadata')
    assert.equal(at(body, 'rows', 0, 'object', 'metadata', 'name'), 'a')
    const whole = await face.ask('GET', `${SERVERS}/a?includeObject=Object`, { accept: TABLE })
    assert.equal(at(whole.body, 'rows', 0, 'object', 'spec', 'url'), 'http://a.example/mcp')
    const none = await face.ask('GET', `${SERVERS}?includeObject=None`, { accept: TABLE })
    assert.equal(at(none.body, 'rows', 0, 'object') ?? null, null)
    const wrong = await face.ask('GET', `${SERVERS}?includeObject=Some`, { accept: TABLE })
    assert.equal(wrong.status, 400)
  })

  promise('lists in columns are JSON, and switches are switches', async (face) => {
    const spec = { allowedJurisdictions: ['DE', 'FR'], requireJurisdiction: true }
    const policy = { apiVersion: 'plat.dev/v1alpha1', kind: 'SovereigntyPolicy', metadata: { name: 'eu' }, spec }
    await created(face, policy, POLICIES)
    const { body } = await face.ask('GET', POLICIES, { accept: TABLE })
    assert.deepEqual(list(at(body, 'rows', 0, 'cells')).slice(0, 4), ['eu', '["DE","FR"]', null, true])
  })
}

/** Returns the first `count` events of a watch as `ADDED a`, while `act` causes them: at once, or after the first event of the initial state. */
async function events(
  face: Face,
  query: string,
  count: number,
  act: () => Promise<unknown>,
): Promise<readonly string[]> {
  const seen: string[] = []
  let acted = query.includes('resourceVersion') ? act() : null
  for await (const line of face.watch(`${SERVERS}?watch=true&${query}`)) {
    seen.push(`${at(line, 'type')} ${at(line, 'object', 'metadata', 'name') ?? at(line, 'object', 'reason')}`)
    acted ??= act()
    if (seen.length === count) break
  }
  await acted
  return seen
}

async function revisionOf(face: Face): Promise<unknown> {
  return at((await face.ask('GET', SERVERS)).body, 'metadata', 'resourceVersion')
}

export function watches(promise: Promised): void {
  promise('a watch reports changes from the version of a list on', async (face) => {
    await created(face, server('old'))
    const from = await revisionOf(face)
    const seen = await events(face, `resourceVersion=${from}`, 3, async () => {
      await created(face, server('a'))
      await face.ask('PATCH', `${SERVERS}/a`, { body: { spec: { trust: 'trusted' } }, type: MERGE })
      await face.ask('DELETE', `${SERVERS}/a`)
    })
    assert.deepEqual(seen, ['ADDED a', 'MODIFIED a', 'DELETED a'])
  })

  promise('a watch without a version first reports the present state, and marks its end on request', async (face) => {
    await created(face, server('a'))
    assert.deepEqual(await events(face, '', 2, () => created(face, server('b'))), ['ADDED a', 'ADDED b'])
    const query = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
    const lines: unknown[] = []
    for await (const line of face.watch(`${SERVERS}?watch=true&${query}`)) {
      lines.push(line)
      if (at(line, 'type') === 'BOOKMARK') break
    }
    assert.deepEqual(
      lines.map((line) => at(line, 'type')),
      ['ADDED', 'ADDED', 'BOOKMARK'],
    )
    const annotations = at(lines.at(-1), 'object', 'metadata', 'annotations')
    assert.deepEqual(annotations, { 'k8s.io/initial-events-end': 'true' })
  })

  promise('who leaves a selector is deleted for its watch, and who comes is added', async (face) => {
    await created(face, server('a', {}, { labels: { app: 'x' } }))
    const label = (app: string) =>
      face.ask('PATCH', `${SERVERS}/a`, { body: { metadata: { labels: { app } } }, type: MERGE })
    const seen = await events(face, 'labelSelector=app%3Dx', 4, async () => {
      await created(face, server('other'))
      await label('y')
      await label('z')
      await label('x')
      await face.ask('DELETE', `${SERVERS}/a`)
    })
    assert.deepEqual(seen, ['ADDED a', 'DELETED a', 'ADDED a', 'DELETED a'])
  })

  promise('a watch ends at its time, and one from a version that is forgotten at once', async (face) => {
    await created(face, server('a'))
    const lines: unknown[] = []
    for await (const line of face.watch(`${SERVERS}?watch=true&timeoutSeconds=1`)) lines.push(line)
    assert.equal(lines.length, 1)
    assert.deepEqual(await events(face, 'resourceVersion=1', 1, async () => {}), ['ERROR Expired'])
    assert.ok((await face.ask('GET', `${SERVERS}?watch=true&resourceVersion=x`)).status >= 400)
  })
}

export function documents(promise: Promised): void {
  promise('clients find our kinds, their short names, their category and what can be done with them', async (face) => {
    const { body } = await face.ask('GET', GROUP)
    const rows = list(at(body, 'resources'))
    const agents = rows.find((row) => at(row, 'name') === 'agents')
    assert.deepEqual([at(agents, 'kind'), at(agents, 'namespaced')], ['Agent', true])
    assert.deepEqual(at(agents, 'shortNames'), ['platagent', 'ag'])
    assert.deepEqual(at(agents, 'categories'), ['plat'])
    const verbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch']
    assert.deepEqual(list(at(agents, 'verbs')).toSorted(), verbs)
    assert.ok(rows.some((row) => at(row, 'name') === 'agents/status'))
    const policies = rows.find((row) => at(row, 'name') === 'sovereigntypolicies')
    assert.equal(at(policies, 'namespaced'), false)
    const groups = list(at((await face.ask('GET', '/apis')).body, 'groups'))
    assert.ok(groups.some((group) => at(group, 'name') === 'plat.dev'))
  })

  promise('one response contains everything for clients that request the aggregated form', async (face) => {
    const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
    const { body } = await face.ask('GET', '/apis', { accept })
    assert.equal(at(body, 'kind'), 'APIGroupDiscoveryList')
    const ours = list(at(body, 'items')).find((item) => at(item, 'metadata', 'name') === 'plat.dev')
    const agents = list(at(ours, 'versions', 0, 'resources')).find((row) => at(row, 'resource') === 'agents')
    assert.deepEqual(at(agents, 'shortNames'), ['platagent', 'ag'])
    assert.deepEqual(at(agents, 'responseKind'), { group: 'plat.dev', version: 'v1alpha1', kind: 'Agent' })
    assert.deepEqual([at(agents, 'scope'), at(agents, 'subresources', 0, 'subresource')], ['Namespaced', 'status'])
    const core = await face.ask('GET', '/api', { accept })
    const [item] = list(at(core.body, 'items'))
    const resources = list(at(item, 'versions', 0, 'resources'))
    assert.ok(resources.some((row) => at(row, 'resource') === 'namespaces'))
  })
}

export function descriptions(promise: Promised): void {
  promise('kubectl explain and the checks of clients find the schemas', async (face) => {
    const index = await face.ask('GET', '/openapi/v3')
    const where = String(at(index.body, 'paths', 'apis/plat.dev/v1alpha1', 'serverRelativeURL'))
    const { body } = await face.ask('GET', where)
    const agent = at(body, 'components', 'schemas', 'dev.plat.v1alpha1.Agent')
    const gvk = { group: 'plat.dev', version: 'v1alpha1', kind: 'Agent' }
    assert.deepEqual(at(agent, 'x-kubernetes-group-version-kind'), [gvk])
    assert.equal(at(agent, 'properties', 'spec', 'properties', 'tier', 'type'), 'string')
    const store = at(body, 'components', 'schemas', 'dev.plat.v1alpha1.MemoryStore')
    assert.deepEqual(at(store, 'properties', 'spec', 'required'), ['scope'])
    const path = '/apis/plat.dev/v1alpha1/namespaces/{namespace}/agents'
    const post = at(body, 'paths', path, 'post')
    assert.deepEqual(at(post, 'x-kubernetes-group-version-kind'), gvk)
    const parameters = list(at(post, 'parameters')).map((parameter) => at(parameter, 'name'))
    assert.ok(parameters.includes('fieldValidation'))
    const patch = at(body, 'paths', `${path}/{name}`, 'patch', 'requestBody', 'content')
    assert.ok(Object.keys(Object(patch)).includes(MERGE))
  })

  promise('clients learn who they are, and which namespaces there are', async (face) => {
    const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
    const who = await face.ask('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', { body: review })
    assert.equal(who.status, 201)
    assert.equal(typeof at(who.body, 'status', 'userInfo', 'username'), 'string')
    assert.ok(names((await face.ask('GET', '/api/v1/namespaces')).body).includes('default'))
    assert.equal((await face.ask('GET', '/api/v1/namespaces/default')).status, 200)
    assert.equal((await face.ask('GET', '/api/v1/namespaces/none')).status, 404)
    assert.match(String(at((await face.ask('GET', '/version')).body, 'gitVersion')), /^v1\.\d+\./)
  })
}
