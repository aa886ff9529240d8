import assert from 'node:assert/strict'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { readPublicKeys } from '@plat/keys'
import { verifyLedger, verifyReceipt } from '@plat/ledger'
import { wholeLines } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { AUDIENCE, provider } from '../../testing/people.ts'
import { started, TOKEN } from '../../testing/started.ts'
import { keyFiles } from './testing/keys.ts'

/** A gateway with a checkpoint every ten records, and a client for its audit API. */
async function setUp(t: TestContext, own: object) {
  const auditPath = join(tempFolder(), 'audit.jsonl')
  const { gateway } = await started(t, { auditPath, auditCheckpointEvery: 10, ...own })
  const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }
  const ask = async (path: string) => {
    const response = await fetch(`${gateway.adminUrl}/v1/audit/${path}`, { headers })
    return { status: response.status, body: JSON.parse(await response.text()) }
  }
  /** Writes two records per call. */
  const act = async (count: number) => {
    for (let index = 0; index < count; index++) {
      const body = JSON.stringify({ target: { agent: `shop/a${index}` } })
      assert.equal((await fetch(`${gateway.adminUrl}/v1/revocations`, { method: 'POST', headers, body })).status, 201)
    }
  }
  /** Waits until no checkpoint is due. */
  const signed = () =>
    until(async () => {
      const { seq, checkpoint } = (await ask('head')).body
      return checkpoint !== null && seq - checkpoint.upTo < 10
    }, 'the checkpoints')
  return { gateway, auditPath, ask, act, signed }
}

test('responses of the admin API suffice to verify a record without the ledger', async (t) => {
  // Shows D3.endpoint.audit.jwks.
  const { uri } = await keyFiles()
  const { gateway, auditPath, ask, act, signed } = await setUp(t, { auditCheckpointKey: uri })
  assert.equal((await ask('proof/0')).status, 404)
  await act(6)
  await signed()
  const { body: head } = await ask('head')
  const lines = wholeLines(auditPath)
  assert.deepEqual([head.seq, head.hash], [lines.length - 1, JSON.parse(lines.at(-1) ?? '').hash])
  const [checkpoint] = (await ask('checkpoints')).body.items
  assert.deepEqual(head.checkpoint, checkpoint.rec)
  assert.equal(lines[checkpoint.seq], JSON.stringify(checkpoint))

  // The keys are public: no token.
  const jwks = await (await fetch(`${gateway.adminUrl}/v1/audit/jwks`)).text()
  const trust = { keys: readPublicKeys(jwks, 'jwks'), hmacKey: null }
  for (let seq = 0; seq < checkpoint.rec.size; seq++) {
    const { status, body } = await ask(`proof/${seq}`)
    assert.equal(status, 200)
    assert.deepEqual(Object.keys(body), ['seq', 'line', 'checkpoint', 'inclusion'])
    assert.equal(body.line, lines[seq])
    const found = verifyReceipt(body, trust)
    assert.ok(typeof found !== 'string' && found.signed, String(found))
  }
  const [uncovered, missing, odd] = [
    await ask(`proof/${checkpoint.seq}`),
    await ask('proof/999'),
    await ask('proof/-1'),
  ]
  assert.deepEqual([uncovered.status, missing.status, odd.status], [404, 404, 400])
  assert.match(uncovered.body.message, /no checkpoint covers this record yet/)
  assert.match(missing.body.message, /no record of this number/)
})

test('retired keys are published with the one that signs, and together they verify the whole ledger', async (t) => {
  // Shows D3.audit.auditCheckpointPublicKeyFiles.
  const [old, next] = [await keyFiles('ES256'), await keyFiles()]
  const auditPath = join(tempFolder(), 'audit.jsonl')
  const first = await setUp(t, { auditPath, auditCheckpointKey: old.uri })
  await first.act(1)
  await first.gateway.drain()
  const { ask, act, gateway } = await setUp(t, {
    auditPath,
    auditCheckpointKey: next.uri,
    auditCheckpointPublicKeyFiles: [old.pub],
  })
  await act(1)
  const { body } = await ask('jwks')
  assert.deepEqual(
    body.keys.map(({ kid, alg, use }: Record<string, string>) => [kid, alg, use]),
    [next, old].map(({ signer }) => [signer.kid, signer.alg, 'sig']),
  )
  await gateway.drain()
  const key = join(tempFolder(), 'jwks.json')
  await writeFile(key, JSON.stringify(body))
  const found = await verifyLedger(auditPath, { key, strict: true })
  assert.deepEqual([found.exitCode, found.checkpoints.signed], [0, 2], found.message)
})

test('records and checkpoints come page by page, by number, by time and by subject', async (t) => {
  const { uri } = await keyFiles()
  const { auditPath, ask, act, signed } = await setUp(t, { auditCheckpointKey: uri })
  await act(20)
  await signed()
  const all = wholeLines(auditPath).map((line) => JSON.parse(line))
  const paged = async (path: string) => {
    const found = []
    let cursor = ''
    for (;;) {
      const { body } = await ask(`${path}&cursor=${cursor}`.replace(/&cursor=$/, ''))
      found.push(...body.items)
      if (body.nextCursor === null) return found
      cursor = body.nextCursor
    }
  }
  assert.deepEqual(await paged('records?limit=7'), all)
  assert.deepEqual(await paged('records?limit=7&from=5&to=20'), all.slice(5, 21))
  const at = new Date(Date.parse(all[10].rec.at) + 0).toISOString()
  const since = (await paged(`records?limit=1000&from=${at}`)).map(({ seq }) => seq)
  assert.deepEqual(
    since,
    all.filter(({ rec }) => rec.at >= at.replace('Z', '000Z')).map(({ seq }) => seq),
  )
  assert.ok(since.length > 20 && since.length < all.length)
  assert.equal((await ask('records?to=2020-01-01T00:00:00Z')).body.items.length, 0)
  const ofAgent = (await ask('records?namespace=shop&agent=a3')).body.items
  assert.deepEqual(
    ofAgent.map(({ rec }: (typeof all)[0]) => rec.target),
    ['shop/a3'],
  )
  const checkpoints = all.filter(({ rec }) => rec.kind === 'checkpoint').toReversed()
  assert.deepEqual(await paged('checkpoints?limit=3'), checkpoints)
  assert.deepEqual(await paged('checkpoints?limit=1'), checkpoints)
  for (const query of [
    'records?from=x',
    'records?to=2026-13-01T00:00:00Z',
    'records?limit=0',
    'checkpoints?cursor=x',
  ]) {
    assert.equal((await ask(query)).status, 400, query)
  }
})

test('an auditor of one namespace gets proofs only of its records', async (t) => {
  const [{ uri }, people] = [await keyFiles(), await provider(t)]
  const { gateway, auditPath, act, signed } = await setUp(t, {
    auditCheckpointKey: uri,
    adminAuth: {
      mode: 'both',
      namespaceRoles: { shop: { auditor: ['user:ada'] }, bank: { auditor: ['user:bob'] } },
      oidc: { issuer: people.state.issuer, audience: AUDIENCE },
    },
  })
  await act(6)
  await signed()
  const status = async (user: string, seq: number) => {
    const token = await people.token({ preferred_username: user })
    const headers = { authorization: `Bearer ${token}` }
    return (await fetch(`${gateway.adminUrl}/v1/audit/proof/${seq}`, { headers })).status
  }
  for (const [seq, line] of wholeLines(auditPath).slice(0, 8).entries()) {
    const isOfShop = JSON.parse(line).rec.namespace === 'shop'
    assert.deepEqual([await status('ada', seq), await status('bob', seq)], [isOfShop ? 200 : 404, 404], line)
  }
})

test('without a key there are no checkpoints, no keys and no proofs, but everything else', async (t) => {
  const { ask, act } = await setUp(t, {})
  await act(1)
  assert.equal((await ask('head')).body.checkpoint, null)
  assert.deepEqual((await ask('checkpoints')).body, { items: [], nextCursor: null })
  assert.deepEqual((await ask('jwks')).body, { keys: [] })
  assert.equal((await ask('proof/0')).status, 404)
  assert.equal((await ask('records')).body.items.length, 3)
})

test('records are selected by members and text, and the newest come first', async (t) => {
  const { ask, act } = await setUp(t, {})
  await act(4)
  const seqs = async (query: string) => {
    const { status, body } = await ask(`records?${query}`)
    assert.equal(status, 200, JSON.stringify(body))
    return { seqs: body.items.map(({ seq }: { seq: number }) => seq), next: body.nextCursor }
  }
  const all = await seqs('limit=1000')
  const newest = await seqs('limit=3&order=newest')
  assert.deepEqual(newest.seqs, all.seqs.slice(-3).reverse())
  const second = await seqs(`limit=1000&order=newest&cursor=${newest.next}`)
  assert.deepEqual([...newest.seqs, ...second.seqs], all.seqs.toReversed())
  assert.equal((await seqs('text=shop%2Fa2')).seqs.length, 1)
  assert.deepEqual((await seqs('user=nobody')).seqs, [])
  assert.deepEqual((await seqs('denied=true')).seqs, [])
  for (const query of ['order=up', 'denied=yes', 'text=', `text=${'x'.repeat(257)}`, 'text=a&text=b'])
    assert.equal((await ask(`records?${query}`)).status, 400, query)
})

test('sealed segments are listed with the state of their verification', async (t) => {
  const auditPath = join(tempFolder(), 'audit.jsonl')
  const first = await setUp(t, { auditPath, auditSegmentBytes: 65_536 })
  assert.deepEqual((await first.ask('segments')).body.items, [])
  await first.act(200)
  await until(async () => (await first.ask('segments')).body.items.length > 1, 'two segments')
  assert.equal((await first.ask('segments')).body.items[0].state, 'unverified')
  await first.gateway.drain()
  const [file = ''] = globSync(`${auditPath.replace('.jsonl', '')}*.jsonl`).filter((name) => name !== auditPath)
  const text = readFileSync(file, 'utf8')
  writeFileSync(file, text.replace('shop/a1"', 'shop/aX"'))
  const { ask } = await setUp(t, { auditPath, auditSegmentBytes: 65_536 })
  const states = async () => (await ask('segments')).body.items.map(({ state }: { state: string }) => state)
  await until(async () => !(await states()).includes('unverified'), 'the verification')
  assert.deepEqual((await states()).toSorted().slice(0, 2), ['damaged', 'verified'])
  const { items, nextCursor } = (await ask('segments?limit=1')).body
  assert.deepEqual([items.length, nextCursor !== null, items[0].isHere, items[0].left], [1, true, true, null])
})
