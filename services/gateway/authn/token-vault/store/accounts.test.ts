import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { poolTable, systemIds, TestClock } from '@plat/core'
import { openFileJournal } from '@plat/state'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { decodeEvent, type Owner, ownerKey, type Tokens } from './account.ts'
import { Accounts, VaultFullError } from './accounts.ts'
import { openEnvelope } from './envelope.ts'

const clock = new TestClock()
const ids = systemIds(clock)
const ada: Owner = { tenant: '', realm: 'https://login.example', user: 'ada', provider: 'hub' }
const bob: Owner = { ...ada, user: 'bob' }

function tokens(accessToken: string): Tokens {
  return {
    accessToken,
    refreshToken: 'refresh',
    expiresAt: null,
    obtainedAt: clock.now(),
    scopes: ['read'],
    login: null,
  }
}

async function keyFolder(): Promise<string> {
  const dir = tempFolder()
  for (const name of ['first', 'second']) await writeFile(join(dir, name), randomBytes(32).toString('hex'))
  return dir
}

/** Accounts in a folder, with keys named by file. */
async function opened(dir: string, key = 'first', retired: readonly string[] = []) {
  const journal = await openFileJournal({ path: join(dir, 'vault.jsonl'), clock, decode: decodeEvent })
  const keys = { keyURI: join(dir, key), retiredKeyURIs: retired.map((name) => join(dir, name)) }
  const faults: unknown[] = []
  const accounts = new Accounts({
    journal,
    envelope: await openEnvelope(keys, ids),
    onFault: (fault) => faults.push(fault),
  })
  const close = async () => {
    await accounts.close()
    await journal.close()
    assert.deepEqual(faults, [])
  }
  try {
    await accounts.open()
  } catch (error) {
    await close()
    throw error
  }
  return { accounts, close, stored: () => readFile(join(dir, 'vault.jsonl'), 'utf8') }
}

const store = (accounts: Accounts, owner: Owner) => {
  const found = accounts.get(ownerKey(owner))
  assert.ok(found !== null)
  return found
}

test('accounts survive a restart encrypted: the file contains neither tokens nor keys', async () => {
  const dir = await keyFolder()
  const first = await opened(dir)
  await first.accounts.connect(ada, tokens('secret-of-ada'))
  await first.accounts.connect(bob, tokens('secret-of-bob'))
  await first.close()
  const second = await opened(dir)
  assert.deepEqual(await second.accounts.tokens(store(second.accounts, ada)), tokens('secret-of-ada'))
  assert.deepEqual(await second.accounts.tokens(store(second.accounts, bob)), tokens('secret-of-bob'))
  const text = await second.stored()
  assert.doesNotMatch(text, /secret-of|refresh"/)
  assert.ok(!text.includes((await readFile(join(dir, 'first'), 'utf8')).trim()))
  await second.close()
})

test('removed and replaced tokens are deleted from the file and do not return after a restart', async () => {
  const dir = await keyFolder()
  const first = await opened(dir)
  await first.accounts.connect(ada, tokens('one'))
  await first.accounts.connect(bob, tokens('two'))
  const { data } = store(first.accounts, ada).sealed
  assert.ok((await first.stored()).includes(data))
  assert.equal(await first.accounts.remove(store(first.accounts, ada), 'disconnected'), true)
  await first.close()
  assert.ok(!(await first.stored()).includes(data))
  const second = await opened(dir)
  assert.equal(second.accounts.get(ownerKey(ada)), null)
  assert.deepEqual(await second.accounts.tokens(store(second.accounts, bob)), tokens('two'))
  await second.close()
})

test('tokens for a removed account do not change its successor', async () => {
  const { accounts, stored, close } = await opened(await keyFolder())
  await accounts.connect(ada, tokens('one'))
  const gone = store(accounts, ada)
  await accounts.remove(gone, 'disconnected')
  // After compaction the versions of the key restart.
  await until(async () => !(await stored()).includes(gone.sealed.data), 'compaction of the journal')
  await accounts.connect(ada, tokens('two'))
  assert.equal(store(accounts, ada).version, gone.version)
  assert.equal(await accounts.renew(gone, tokens('stale')), null)
  assert.equal(await accounts.remove(gone, 'invalid_grant'), false)
  assert.deepEqual(await accounts.tokens(store(accounts, ada)), tokens('two'))
  await close()
})

test('a seal opens for its account alone, under its key alone, and not with a bit changed', async () => {
  const dir = await keyFolder()
  const mine = await openEnvelope({ keyURI: join(dir, 'first'), retiredKeyURIs: [] }, ids)
  const other = await openEnvelope({ keyURI: join(dir, 'second'), retiredKeyURIs: [] }, ids)
  const sealed = await mine.seal(ada, tokens('secret'))
  assert.deepEqual(await mine.open(ada, sealed), tokens('secret'))
  for (const owner of [bob, { ...ada, tenant: 'acme' }, { ...ada, realm: 'x' }, { ...ada, provider: 'nub' }]) {
    assert.equal(await mine.open(owner, sealed), null)
  }
  assert.equal(await other.open(ada, sealed), null)
  for (const part of ['key', 'nonce', 'data'] as const) {
    const bytes = Buffer.from(sealed[part], 'base64url')
    for (let at = 0; at < bytes.length; at++) {
      const changed = Buffer.from(bytes)
      changed[at] = (changed[at] ?? 0) ^ 0x80
      assert.equal(await mine.open(ada, { ...sealed, [part]: changed.toString('base64url') }), null)
    }
    for (const odd of ['', 'A', '!', sealed[part].slice(4)]) {
      assert.equal(await mine.open(ada, { ...sealed, [part]: odd }), null)
    }
  }
})

test('a key that is missing refuses the start and says how many accounts need it; a retired key opens what it sealed', async () => {
  // Shows D3.tokenVault.retiredKeyURIs.
  const dir = await keyFolder()
  const first = await opened(dir)
  await first.accounts.connect(ada, tokens('one'))
  await first.close()
  await assert.rejects(opened(dir, 'second'), /^Error: tokenVault.retiredKeyURIs: 1 accounts are sealed with a key/)
  const second = await opened(dir, 'second', ['first'])
  const before = store(second.accounts, ada)
  assert.ok(second.accounts.isStale(before))
  const after = await second.accounts.renew(before, tokens('one'))
  assert.ok(after !== null && !second.accounts.isStale(after))
  await second.close()
  const third = await opened(dir, 'second')
  assert.deepEqual(await third.accounts.tokens(store(third.accounts, ada)), tokens('one'))
  await third.close()
})

test('every unusable key is reported by its field', async () => {
  const dir = await keyFolder()
  await writeFile(join(dir, 'short'), 'AAAA')
  const keys = { keyURI: join(dir, 'nothing'), retiredKeyURIs: [join(dir, 'first'), join(dir, 'short')] }
  await assert.rejects(openEnvelope(keys, ids), (error) => {
    assert.ok(error instanceof Error)
    assert.match(
      error.message,
      /^tokenVault.keyURI: .*nothing: cannot be read \(ENOENT\)\ntokenVault.retiredKeyURIs\[1\]: .*short: holds no AES-256 key/,
    )
    return true
  })
})

test('opening a journal with an event of another version fails', () => {
  for (const event of [
    { t: 'shared' },
    { t: 'removed', why: 'bored' },
    { t: 'kept', account: { ...ada }, sealed: {} },
    null,
  ]) {
    assert.throws(() => decodeEvent(event), /not known to this version/)
  }
})

test('a user who connects an account for each tenant uses up one share, and another user connects', async () => {
  const { accounts, close } = await opened(await keyFolder())
  const share = poolTable.connected_accounts.shares[0].max
  for (let n = 0; n < share; n++) await accounts.connect({ ...ada, tenant: `t${n}` }, tokens('x'))
  await assert.rejects(accounts.connect({ ...ada, tenant: 'one more' }, tokens('x')), VaultFullError)
  await accounts.connect({ ...ada, tenant: 't1' }, tokens('again'))
  await accounts.connect({ ...bob, tenant: 't1' }, tokens('x'))
  assert.equal(await accounts.remove(store(accounts, { ...ada, tenant: 't1' }), 'disconnected'), true)
  await accounts.connect({ ...ada, tenant: 'one more' }, tokens('x'))
  assert.equal(accounts.size, share + 1)
  await close()
})
