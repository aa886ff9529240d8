import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { isObject } from '@plat/core'
import { verifyLedger } from '@plat/ledger'
import { freePort, tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { type AttestationParties, createParties, OTHER, startFixture, terms, text } from '../testing/fixture.ts'

let parties: AttestationParties
before(async () => {
  parties = await createParties()
})
after(() => parties.broker.stop())

test('a session has one release, and a repeated request returns it', async (t) => {
  const fixture = await startFixture(t, parties)
  const releaseId = await fixture.release('one')
  assert.match(releaseId, /^[a-z2-7]{32}$/)
  assert.equal(await fixture.release('one'), releaseId)
  const ask = async (where: string, body: unknown) => {
    const answer = await fixture.post(where, body)
    return [answer.status, answer.body.error ?? answer.body.state]
  }
  assert.deepEqual(await ask('/v1/releases', { ...terms('one'), digests: [] }), [409, 'release_exists'])
  assert.equal((await fixture.workload(releaseId).redeem()).status, 200)
  assert.deepEqual(await ask('/v1/releases', terms('one')), [409, 'release_exists'])
  assert.deepEqual(await ask('/v1/releases/end', { releaseId }), [200, 'ended'])
  assert.deepEqual(await ask('/v1/releases/end', { releaseId }), [404, 'unknown_release'])
  assert.deepEqual(await ask('/v1/releases/state', { releaseId }), [200, 'ended'])
  assert.deepEqual(await ask('/v1/releases/state', { releaseId: 'x' }), [404, 'unknown_release'])
  assert.notEqual(await fixture.release('one'), releaseId)
  assert.equal(await fixture.metric('plat_attest_releases_created_total'), 2)
})

test('a release that could not be redeemed is not created', async (t) => {
  const fixture = await startFixture(t, parties)
  const good = terms('bad')
  const session = isObject(good.session) ? good.session : {}
  const bodies: readonly (readonly [unknown, RegExp])[] = [
    ['{', /invalid JSON/],
    [{ ...good, extra: 1 }, /unknown field "extra"/],
    [{ ...good, session: undefined }, /session is required/],
    [{ ...good, session: { ...session, namespace: 'a/b' } }, /invalid namespace/],
    [{ ...good, session: { ...session, dpopJkt: 'x' } }, /unknown field "session.dpopJkt"/],
    [{ ...good, session: { ...session, scopes: ['a b'] } }, /invalid scope/],
    [{ ...good, checks: [] }, /checks: name at least one/],
    [{ ...good, checks: ['a b'] }, /checks: an entry is malformed/],
    [{ ...good, digests: [''] }, /digests: an entry is malformed/],
    [{ ...good, isolation: 'T' }, /isolation: must be a word/],
    [{ ...good, endsAt: 'soon' }, /endsAt: must be a time/],
    [{ ...good, endsAt: '2020-01-01T00:00:00Z' }, /endsAt: must lie in the future/],
  ]
  for (const [body, message] of bodies) {
    const answer = await fixture.post('/v1/releases', body)
    assert.deepEqual([answer.status, answer.body.error], [400, 'invalid_request'], JSON.stringify(body))
    assert.match(text(answer.body.message), message)
    assert.match(text(answer.body.requestId), /^[0-9a-f-]{36}$/)
  }
  assert.equal(await fixture.metric('plat_attest_releases_created_total'), 0)
})

test('only the service token can create releases', async (t) => {
  const fixture = await startFixture(t, parties)
  for (const authorization of ['', 'Bearer x', `Bearer ${parties.broker.brokerToken}`]) {
    for (const where of ['/v1/releases', '/v1/releases/state', '/v1/releases/end']) {
      const { status, headers, body } = await fixture.post(where, terms('closed'), { authorization })
      assert.deepEqual([status, body.error], [401, 'unauthorized'])
      assert.equal(headers.get('www-authenticate'), 'Bearer realm="plat-attestation"')
      assert.equal(headers.get('cache-control'), 'no-store')
    }
  }
  assert.equal((await fixture.post('/v1/nothing', {})).body.error, 'not_found')
})

test('while the broker is unreachable nothing is released, and nothing is lost', async (t) => {
  const away = await startFixture(t, parties, { brokerUrl: `http://127.0.0.1:${await freePort()}` })
  const { status, body, headers } = await away.workload(await away.release('away')).challenge()
  assert.deepEqual([status, body.error, headers.get('retry-after')], [503, 'unavailable', '5'])
  const stranger = { PLAT_ATTESTATION_TOKEN: 'attestation-secret', PLAT_BROKER_TOKEN: 'wrong' }
  const unknown = await startFixture(t, parties, { env: stranger })
  assert.equal((await unknown.workload(await unknown.release('away')).challenge()).status, 503)
  assert.ok(unknown.lines.some((line) => line.includes('"status":401')))
})

test('with -audit-path releases and refusals are records that verify, and contain no token', async (t) => {
  const auditPath = path.join(tempFolder(), 'audit.jsonl')
  const fixture = await startFixture(t, parties, { auditPath })
  const releaseId = await fixture.release('audited', { digests: [] })
  const workload = fixture.workload(releaseId)
  await workload.redeem(await workload.prove({ by: parties.stranger }))
  const { body } = await workload.redeem()
  const renewed = await workload.renew(text(body.token))
  await workload.renew(text(renewed.body.token), await workload.prove({ measurement: OTHER }))
  const records = async () =>
    (await readFile(auditPath, 'utf8')).split('\n').flatMap((line) => {
      if (line === '') return []
      const { rec }: { rec?: unknown } = JSON.parse(line)
      return isObject(rec) && rec.kind === 'decision' ? [rec] : []
    })
  await until(async () => (await records()).length >= 6, 'six records')
  const written = await records()
  assert.deepEqual(written.map(({ op, action, code }) => [op, action, code]).slice(0, 4), [
    ['attestation.release', 'allow', undefined],
    ['attestation.redeem', 'deny', 'evidence_refused'],
    ['attestation.redeem', 'allow', undefined],
    ['attestation.renew', 'allow', undefined],
  ])
  assert.deepEqual(
    written
      .slice(4)
      .map(({ op, action }) => [op, action])
      .sort(),
    [
      ['attestation.end', 'allow'],
      ['attestation.renew', 'deny'],
    ],
  )
  const redeemed = written[2]
  assert.deepEqual(
    [redeemed?.session, redeemed?.user, redeemed?.jti, redeemed?.expiresAt],
    ['audited', 'ada', body.jti, body.expiresAt],
  )
  await fixture.service.close()
  assert.equal((await verifyLedger(auditPath)).verdict, 'valid')
  const whole = (await readFile(auditPath, 'utf8')) + fixture.lines.join('\n')
  for (const token of [body.token, renewed.body.token]) assert.ok(!whole.includes(text(token).split('.')[2] ?? 'x'))
})
