import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { type TestContext, test } from 'node:test'
import { ephemeralSigner } from '@plat/keys'
import { signJws } from '@plat/tokens'
import { Credentials } from './authorization-header.ts'
import { startAuthenticator, wire } from './testing/fixture.ts'

/** Requests on one connection. */
function connection() {
  const socket = {}
  const body = () => Object.assign(Readable.from([]), { socket })
  return { body, wire: (authorization: string) => ({ ...wire({ authorization }), body: body() }) }
}

async function connected(t: TestContext) {
  const { auth, ...rest } = await startAuthenticator(t)
  const { wire: request } = connection()
  const ask = async (token: string) => {
    const answer = await auth.authenticate(request(`Bearer ${token}`))
    return 'jti' in answer ? answer.jti : answer.data?.reason
  }
  return { ...rest, auth, ask }
}

test('a repeated header is parsed once per connection, separately for each connection', () => {
  const credentials = new Credentials()
  const [one, other] = [connection(), connection()]
  const text = `Bearer ${'a'.repeat(700)}`
  const presented = credentials.read(text, one.body())
  assert.deepEqual([presented?.scheme, presented?.token.text], ['bearer', 'a'.repeat(700)])
  assert.equal(credentials.read(text, one.body()), presented)
  assert.notEqual(credentials.read(text, other.body()), presented)
  assert.notEqual(credentials.read(text, Readable.from([])), presented)
})

test('another token, another scheme or an invalid header on a connection never gives the cached result', () => {
  const credentials = new Credentials()
  const { body } = connection()
  const read = (text: string) => {
    const presented = credentials.read(text, body())
    return presented === null
      ? null
      : `${presented.scheme} ${presented.token.text} ${presented.token.digest.slice(0, 6)}`
  }
  assert.equal(read('Bearer one'), 'bearer one 7692c3')
  assert.equal(read('Bearer two'), 'bearer two 3fc4cc')
  assert.equal(read('DPoP one'), 'dpop one 7692c3')
  assert.equal(read('Bearer one, Bearer two'), null)
  assert.equal(read('Bearer one'), 'bearer one 7692c3')
})

test('each request of a connection has the identity of its token', async (t) => {
  const { issuer, ask } = await connected(t)
  const [ada, bob] = [issuer.token({ jti: 'ada' }), issuer.token({ jti: 'bob' })]
  const answers = []
  for (const token of [ada, ada, ada, bob, bob, ada, `${ada.slice(0, -4)}AAAA`, ada]) answers.push(await ask(token))
  assert.deepEqual(answers, ['ada', 'ada', 'ada', 'bob', 'bob', 'ada', 'signature', 'ada'])
})

test('a token repeated on a connection is checked for expiry, keys and cache like any other', async (t) => {
  const { clock, issuer, auth, ask } = await connected(t)
  const token = issuer.token({ jti: 'ada' })
  for (let n = 0; n < 3; n++) assert.equal(await ask(token), 'ada')
  auth.clear()
  assert.equal(await ask(token), 'ada')
  await clock.advance((900 + 31) * 1000)
  assert.equal(await ask(token), 'expired')
  assert.equal(await ask(signJws(ephemeralSigner(), {}, issuer.claims())), 'kid')
})
