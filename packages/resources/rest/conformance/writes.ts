import assert from 'node:assert/strict'
import {
  at,
  created,
  type Face,
  GROUP,
  JSON_PATCH,
  list,
  MERGE,
  names,
  POLICIES,
  type Promised,
  SERVERS,
  server,
} from './face.ts'

export function creations(promise: Promised): void {
  promise('what is created has identity and defaults, and is read back as it was answered', async (face) => {
    const body = await created(face, server('a', {}, { labels: { app: 'x' } }))
    assert.equal(at(body, 'metadata', 'generation'), 1)
    assert.match(String(at(body, 'metadata', 'resourceVersion')), /^\d+$/)
    assert.match(String(at(body, 'metadata', 'uid')), /^[0-9a-f-]{36}$/)
    assert.ok(Date.parse(String(at(body, 'metadata', 'creationTimestamp'))) > 0)
    assert.deepEqual(at(body, 'metadata', 'labels'), { app: 'x' })
    assert.equal(at(body, 'spec', 'trust'), 'untrusted')
    const read = await face.ask('GET', `${SERVERS}/a`)
    assert.deepEqual([read.status, read.body], [200, body])
  })

  promise('a name may be made up, and an object of cluster scope has no namespace', async (face) => {
    const made = await created(face, { ...server('x'), metadata: { generateName: 'made-' } })
    assert.match(String(at(made, 'metadata', 'name')), /^made-[a-z0-9]{5,}$/)
    assert.equal(at(made, 'metadata', 'namespace'), 'default')
    const policy = { apiVersion: 'plat.dev/v1alpha1', kind: 'SovereigntyPolicy', metadata: { name: 'eu' }, spec: {} }
    const global = await created(face, policy, POLICIES)
    assert.equal(at(global, 'metadata', 'namespace'), undefined)
    assert.equal((await face.ask('GET', `${POLICIES}/eu`)).status, 200)
  })

  promise('a dry run answers what would be, and nothing is', async (face) => {
    const tried = await face.ask('POST', `${SERVERS}?dryRun=All`, { body: server('a') })
    assert.equal(tried.status, 201)
    assert.equal((await face.ask('GET', `${SERVERS}/a`)).status, 404)
    await created(face, server('a'))
    const body = { spec: { trust: 'trusted' } }
    const patched = await face.ask('PATCH', `${SERVERS}/a?dryRun=All`, { body, type: MERGE })
    assert.deepEqual([patched.status, at(patched.body, 'spec', 'trust')], [200, 'trusted'])
    assert.equal((await face.ask('DELETE', `${SERVERS}/a?dryRun=All`)).status, 200)
    assert.equal(at((await face.ask('GET', `${SERVERS}/a`)).body, 'spec', 'trust'), 'untrusted')
    assert.equal((await face.ask('POST', `${SERVERS}?dryRun=Some`, { body: server('b') })).status, 422)
  })
}

export function refusals(promise: Promised): void {
  const refused = async (face: Face, object: unknown, query = '') => {
    const { status, body } = await face.ask('POST', `${SERVERS}${query}`, { body: object })
    assert.deepEqual([at(body, 'kind'), at(body, 'status'), at(body, 'code')], ['Status', 'Failure', status])
    return body
  }

  promise('problems are reported field by field', async (face) => {
    const wrong = { ...server('a', { url: 'ftp://x', trust: 'maybe', timeoutSeconds: 'soon' }) }
    const body = await refused(face, wrong)
    assert.deepEqual([at(body, 'code'), at(body, 'reason')], [422, 'Invalid'])
    assert.deepEqual([at(body, 'details', 'name'), at(body, 'details', 'kind')], ['a', 'MCPServer'])
    const causes = list(at(body, 'details', 'causes')).map((cause) => [at(cause, 'field'), at(cause, 'reason')])
    for (const expected of [
      ['spec.url', 'FieldValueInvalid'],
      ['spec.trust', 'FieldValueNotSupported'],
      ['spec.timeoutSeconds', 'FieldValueTypeInvalid'],
    ]) {
      assert.ok(
        causes.some((cause) => JSON.stringify(cause) === JSON.stringify(expected)),
        JSON.stringify(causes),
      )
    }
    assert.match(String(at(body, 'message')), /^MCPServer\.plat\.dev "a" is invalid: \[/)
    const missing = await refused(face, { ...server('a'), spec: {} })
    const [cause] = list(at(missing, 'details', 'causes'))
    assert.deepEqual([at(cause, 'field'), at(cause, 'reason')], ['spec.url', 'FieldValueRequired'])
  })

  promise('an unknown field is refused, reported or dropped, as the client requests', async (face) => {
    const body = await refused(face, server('a', { ulr: 1 }), '?fieldValidation=Strict')
    assert.deepEqual([at(body, 'code'), at(body, 'reason')], [400, 'BadRequest'])
    assert.match(String(at(body, 'message')), /strict decoding error: unknown field "spec\.ulr"/)
    const warned = await face.ask('POST', SERVERS, { body: server('a', { ulr: 1 }) })
    assert.equal(warned.status, 201)
    assert.match(warned.warnings.join(), /^299 - "unknown field \\"spec\.ulr\\""$/)
    assert.equal(at(warned.body, 'spec', 'ulr'), undefined)
    const ignored = await face.ask('POST', `${SERVERS}?fieldValidation=Ignore`, { body: server('b', { ulr: 1 }) })
    assert.deepEqual([ignored.status, ignored.warnings], [201, []])
  })

  promise('what is there already, elsewhere, or of another kind is refused', async (face) => {
    await created(face, server('a'))
    const twice = await refused(face, server('a'))
    assert.deepEqual([at(twice, 'code'), at(twice, 'reason')], [409, 'AlreadyExists'])
    assert.deepEqual([at(twice, 'details', 'name'), at(twice, 'details', 'kind')], ['a', 'mcpservers'])
    assert.equal(at(await refused(face, server('b', {}, { namespace: 'other' })), 'code'), 400)
    assert.equal(at(await refused(face, { ...server('b'), kind: 'Agent' }), 'code'), 422)
    assert.equal(at(await refused(face, 'text'), 'code'), 400)
    const gone = await face.ask('GET', `${SERVERS}/b`)
    assert.deepEqual([gone.status, at(gone.body, 'reason')], [404, 'NotFound'])
    assert.equal(at(gone.body, 'message'), 'mcpservers.plat.dev "b" not found')
    assert.equal((await face.ask('GET', `${GROUP}/none`)).status, 404)
    const nameless = await face.ask('PUT', SERVERS, { body: server('a') })
    assert.ok([400, 405].includes(nameless.status), String(nameless.status))
    assert.equal((await face.ask('GET', `${SERVERS}/a`, { accept: 'image/png' })).status, 406)
    assert.equal((await face.ask('POST', SERVERS, { body: server('c'), type: 'text/plain' })).status, 415)
  })
}

export function updates(promise: Promised): void {
  const put = (face: Face, body: unknown, where = `${SERVERS}/a`) => face.ask('PUT', where, { body })

  promise('an update carries the version that it changes', async (face) => {
    const first = await created(face, server('a'))
    const revision = at(first, 'metadata', 'resourceVersion')
    const without = await put(face, server('a', { trust: 'trusted' }))
    assert.deepEqual([without.status, at(without.body, 'reason')], [422, 'Invalid'])
    assert.match(
      String(at(without.body, 'message')),
      /metadata\.resourceVersion: Invalid value: .*must be specified for an update/,
    )
    const changed = await put(face, server('a', { trust: 'trusted' }, { resourceVersion: revision }))
    assert.deepEqual([changed.status, at(changed.body, 'metadata', 'generation')], [200, 2])
    assert.equal(at(changed.body, 'metadata', 'uid'), at(first, 'metadata', 'uid'))
    const late = await put(face, server('a', {}, { resourceVersion: revision }))
    assert.deepEqual([late.status, at(late.body, 'reason')], [409, 'Conflict'])
    assert.match(
      String(at(late.body, 'message')),
      /the object has been modified; please apply your changes to the latest version/,
    )
    const same = await put(face, changed.body)
    assert.deepEqual([same.status, same.body], [200, changed.body])
  })

  promise('an update is of the object that its path names', async (face) => {
    const first = await created(face, server('a'))
    const metadata = { resourceVersion: at(first, 'metadata', 'resourceVersion') }
    assert.equal((await put(face, server('b', {}, metadata))).status, 400)
    assert.equal((await put(face, server('b', {}, metadata), `${SERVERS}/b`)).status, 404)
    const other = await put(face, server('a', {}, { ...metadata, uid: '00000000-0000-0000-0000-000000000000' }))
    assert.equal(other.status, 409)
    assert.equal((await put(face, server('a', { url: 'x' }, metadata))).status, 422)
  })
}

export function patches(promise: Promised): void {
  const patch = (face: Face, body: unknown, type = MERGE) => face.ask('PATCH', `${SERVERS}/a`, { body, type })

  promise('a merge patch changes members and takes away what it sets to null', async (face) => {
    const first = await created(face, server('a', { jurisdiction: 'DE' }, { labels: { app: 'x', tier: 'y' } }))
    const body = { metadata: { labels: { app: null } }, spec: { jurisdiction: null, trust: 'trusted' } }
    const patched = await patch(face, body)
    assert.equal(patched.status, 200)
    assert.deepEqual(at(patched.body, 'metadata', 'labels'), { tier: 'y' })
    assert.deepEqual(
      [at(patched.body, 'spec', 'jurisdiction'), at(patched.body, 'spec', 'trust')],
      [undefined, 'trusted'],
    )
    const resourceVersion = at(first, 'metadata', 'resourceVersion')
    assert.equal((await patch(face, { metadata: { resourceVersion }, spec: { trust: 'untrusted' } })).status, 409)
    const wrong = await patch(face, { spec: { trust: 'maybe' } })
    assert.deepEqual([wrong.status, at(wrong.body, 'reason')], [422, 'Invalid'])
    assert.equal((await face.ask('PATCH', `${SERVERS}/b`, { body, type: MERGE })).status, 404)
  })

  promise('a JSON patch does its operations in order, or nothing', async (face) => {
    await created(face, server('a', { protocolVersions: ['x', 'y'] }))
    const path = '/spec/protocolVersions'
    const patched = await patch(
      face,
      [
        { op: 'test', path: `${path}/0`, value: 'x' },
        { op: 'remove', path: `${path}/0` },
        { op: 'add', path: `${path}/-`, value: 'z' },
        { op: 'replace', path: '/spec/trust', value: 'trusted' },
        { op: 'add', path: '/metadata/labels', value: { 'a/b': '1' } },
        { op: 'remove', path: '/metadata/labels/a~1b' },
      ],
      JSON_PATCH,
    )
    assert.equal(patched.status, 200, JSON.stringify(patched.body))
    assert.deepEqual(at(patched.body, 'spec', 'protocolVersions'), ['y', 'z'])
    const failing = [
      { op: 'replace', path: '/spec/trust', value: 'untrusted' },
      { op: 'test', path: '/spec/url', value: 'other' },
    ]
    assert.equal((await patch(face, failing, JSON_PATCH)).status, 422)
    assert.equal((await patch(face, [{ op: 'remove', path: '/spec/none' }], JSON_PATCH)).status, 422)
    assert.equal(at((await face.ask('GET', `${SERVERS}/a`)).body, 'spec', 'trust'), 'trusted')
  })

  promise('a strategic merge patch is refused for these kinds', async (face) => {
    await created(face, server('a'))
    const strategic = await patch(face, { spec: {} }, 'application/strategic-merge-patch+json')
    assert.deepEqual([strategic.status, at(strategic.body, 'reason')], [415, 'UnsupportedMediaType'])
    assert.match(String(at(strategic.body, 'message')), /application\/merge-patch\+json/)
  })
}

export function statuses(promise: Promised): void {
  promise('spec and status are two writes, and only one of them counts generations', async (face) => {
    const first = await created(face, { ...server('a'), status: { observedTools: 9 } })
    assert.equal(at(first, 'status'), undefined)
    const where = `${SERVERS}/a/status`
    const written = await face.ask('PATCH', where, { body: { status: { observedTools: 2 } }, type: MERGE })
    assert.deepEqual([written.status, at(written.body, 'status', 'observedTools')], [200, 2])
    const both = await face.ask('PATCH', where, {
      body: { spec: { trust: 'trusted' }, status: { observedTools: 3 } },
      type: MERGE,
    })
    assert.deepEqual([at(both.body, 'spec', 'trust'), at(both.body, 'status', 'observedTools')], ['untrusted', 3])
    assert.equal(at(both.body, 'metadata', 'generation'), 1)
    const spec = { url: 'http://a.example/other' }
    const put = await face.ask('PUT', `${SERVERS}/a`, { body: { ...Object(both.body), spec, status: {} } })
    assert.deepEqual([at(put.body, 'metadata', 'generation'), at(put.body, 'status', 'observedTools')], [2, 3])
    const wrong = await face.ask('PATCH', where, { body: { status: { observedTools: 'many' } }, type: MERGE })
    assert.equal(wrong.status, 422)
    const stale = { ...Object(first), status: { observedTools: 4 } }
    assert.equal((await face.ask('PUT', where, { body: stale })).status, 409)
    assert.equal(at((await face.ask('GET', where)).body, 'status', 'observedTools'), 3)
  })
}

export function removals(promise: Promised): void {
  promise('what is deleted is gone, if it is what was meant', async (face) => {
    const first = await created(face, server('a'))
    const uid = '00000000-0000-0000-0000-000000000000'
    const options = { kind: 'DeleteOptions', apiVersion: 'v1', preconditions: { uid } }
    assert.equal((await face.ask('DELETE', `${SERVERS}/a`, { body: options })).status, 409)
    const removed = await face.ask('DELETE', `${SERVERS}/a`)
    assert.deepEqual([removed.status, at(removed.body, 'status')], [200, 'Success'])
    const details = { name: 'a', group: 'plat.dev', kind: 'mcpservers', uid: at(first, 'metadata', 'uid') }
    assert.deepEqual(at(removed.body, 'details'), details)
    assert.equal((await face.ask('DELETE', `${SERVERS}/a`)).status, 404)
  })

  promise('a collection is deleted as far as the selector reaches', async (face) => {
    for (const name of ['a', 'b', 'c'])
      await created(face, server(name, {}, { labels: { keep: String(name === 'b') } }))
    assert.equal((await face.ask('DELETE', `${SERVERS}?labelSelector=keep%3Dfalse`)).status, 200)
    assert.deepEqual(names((await face.ask('GET', SERVERS)).body), ['b'])
  })
}
