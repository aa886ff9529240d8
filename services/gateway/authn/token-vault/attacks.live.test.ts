import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { after, test } from 'node:test'
import { crc32 } from 'node:zlib'
import { PUBLIC, startProviders, VaultFixture } from './testing/fixture.ts'

const CONNECT = `${PUBLIC}/v1/connect/hub`

const providers = await startProviders()
after(() => providers.close())

const isBack = (url: URL) => url.href.startsWith(`${CONNECT}/callback`)
const isBackFromLogin = (url: URL) => url.href.startsWith(`${PUBLIC}/v1/connect/callback`)
const STRANGE = /This was not begun in this browser, was done already, or took too long/

test('a provider redirect is accepted only in the browser that began the flow, and once', async (t) => {
  const fixture = await VaultFixture.start(t, providers)
  const mine = fixture.browser()
  const { url: back } = await fixture.connect(mine, 'mallory', 'ada-at-hub', isBack)
  const theirs = fixture.browser()
  const early = await theirs.open(back)
  assert.deepEqual([early.status, STRANGE.test(early.text)], [400, true])
  // A browser in another flow has another cookie.
  await fixture.login(theirs, 'ada')
  assert.equal((await theirs.open(back)).status, 400)
  assert.equal((await fixture.callAs('ada')).connectURL, CONNECT)
  assert.equal((await mine.open(back)).status, 200)
  const again = await mine.open(back)
  assert.deepEqual([again.status, STRANGE.test(again.text)], [400, true])
  assert.equal((await fixture.callAs('mallory')).as, 'ada-at-hub')
})

test('a login redirect and the form after it are accepted only in the browser that began the flow, and once', async (t) => {
  const fixture = await VaultFixture.start(t, providers)
  const mine = fixture.browser()
  await mine.open(CONNECT)
  const login = await mine.submit({ login: 'mallory', password: 'any' }, isBackFromLogin)
  const back = login.status === 0 ? login.url : (await mine.submit({}, isBackFromLogin)).url
  assert.ok(isBackFromLogin(back))
  const theirs = fixture.browser()
  assert.equal((await theirs.open(back)).status, 400)
  await theirs.open(CONNECT, (url) => url.origin === fixture.idp.url)
  assert.equal((await theirs.open(back)).status, 400)
  assert.match((await mine.open(back)).text, /You are logged in as<\/dt><dd>mallory/)
  const form = mine.page
  await mine.submit({ action: 'connect' }, (url) => url.origin === fixture.hub.url)
  assert.equal((await mine.submit({ action: 'connect' })).status, 400, 'the form was already submitted')
  assert.match((await mine.open(back)).text, /The login or hub did not agree/, 'the code is spent')
  // The page and form of another browser. Sent by a victim, it would connect the victim's account to mallory.
  const victim = fixture.browser()
  await fixture.login(victim, 'ada')
  const flow = /name="flow" value="([^"]+)"/.exec(form.text)?.[1] ?? ''
  assert.equal((await victim.submit({ flow, action: 'connect' })).status, 400)
})

test('a code of another flow, another issuer and no issuer are refused, and nothing is connected', async (t) => {
  // Shows D3.tokenVault.providers.issuer.
  const fixture = await VaultFixture.start(t, providers)
  const { url: others } = await fixture.connect(fixture.browser(), 'mallory', 'mallory-at-hub', isBack)
  const changes: [(url: URL) => void, RegExp][] = [
    [(url) => url.searchParams.set('code', others.searchParams.get('code') ?? ''), /invalid_grant/],
    [(url) => url.searchParams.set('iss', 'https://evil.example'), /refused/],
    [(url) => url.searchParams.delete('iss'), /refused/],
    [(url) => url.searchParams.append('iss', fixture.hub.url), /did not agree/],
    [(url) => url.searchParams.append('state', 'other'), STRANGE],
    [(url) => url.searchParams.set('state', others.searchParams.get('state') ?? ''), STRANGE],
  ]
  for (const [change, why] of changes) {
    const browser = fixture.browser()
    const { url } = await fixture.connect(browser, 'ada', 'ada-at-hub', isBack)
    change(url)
    const page = await browser.open(url)
    assert.ok(page.status >= 400, String(url))
    assert.match(page.text, why)
    assert.match(page.text, /Nothing was connected/)
  }
  assert.equal((await fixture.callAs('ada')).connectURL, CONNECT)
  assert.equal((await fixture.admin('GET', '/v1/accounts')).body instanceof Object, true)
  assert.deepEqual((await fixture.admin('GET', '/v1/accounts')).body, { items: [], nextCursor: null })
})

test('a redirect to the address of another provider is refused: a code is sent only to the provider that issued it', async (t) => {
  const provider = (name: string) => ({
    name,
    issuer: providers.hub.url,
    clientID: 'vault',
    allowedServers: ['default/notes'],
  })
  const fixture = await VaultFixture.start(t, providers, { vault: { providers: [provider('hub'), provider('nub')] } })
  const browser = fixture.browser()
  await fixture.login(browser, 'ada', 'nub')
  const [, other = ''] = /name="flow" value="([^"]+)"/.exec(browser.page.text) ?? []
  await fixture.login(browser, 'ada', 'hub')
  assert.equal((await browser.submit({ flow: other, action: 'disconnect' })).status, 400)
  await fixture.login(browser, 'ada', 'nub')
  const { url: authorizationUrl } = await browser.submit({ action: 'connect' }, (url) =>
    url.href.includes('redirect_uri'),
  )
  const back = new URL(`${CONNECT}/callback`)
  for (const [name, value] of Object.entries({
    code: 'of-hub',
    state: authorizationUrl.searchParams.get('state') ?? '',
  })) {
    back.searchParams.set(name, value)
  }
  const page = await browser.open(back)
  assert.deepEqual([page.status, STRANGE.test(page.text)], [400, true])
})

test('a user who opens the link of another user connects their own account', async (t) => {
  const fixture = await VaultFixture.start(t, providers)
  const link = (await fixture.callAs('mallory')).connectURL ?? ''
  const victim = fixture.browser()
  await victim.open(link)
  await fixture.connect(victim, 'ada', 'ada-at-hub')
  assert.equal((await fixture.callAs('mallory')).connectURL, CONNECT)
  assert.equal((await fixture.callAs('ada')).as, 'ada-at-hub')
})

test('a flow leads to the login and to the provider, whatever the link contains, and no page runs scripts or can be framed', async (t) => {
  const fixture = await VaultFixture.start(t, providers)
  const browser = fixture.browser()
  const begun = await browser.open(
    `${CONNECT}?return_to=https://evil.example&redirect_uri=https://evil.example&next=//evil.example`,
    (url) => url.origin !== PUBLIC,
  )
  assert.equal(begun.url.origin, fixture.idp.url)
  assert.doesNotMatch(begun.url.href, /evil/)
  assert.equal(begun.url.searchParams.get('redirect_uri'), `${PUBLIC}/v1/connect/callback`)
  assert.equal(begun.url.searchParams.get('code_challenge_method'), 'S256')
  const done = await fixture.connect(browser, 'ada', 'ada-at-hub')
  const places = new Set(done.way.map((address) => new URL(address).origin))
  assert.deepEqual(
    [...places].filter((origin) => origin !== PUBLIC && origin !== fixture.hub.url),
    [],
  )
  const failed = await fixture.browser().open(`${CONNECT}/callback?state=x&error=<script>alert(1)</script>`)
  const unknown = await browser.open(`${PUBLIC}/v1/connect/%3Cscript%3E`)
  for (const { headers, text } of [done, failed, unknown]) {
    assert.match(
      headers['content-security-policy']?.toString() ?? '',
      /^default-src 'none'; style-src 'sha256-[^ ]+'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'$/,
    )
    assert.equal(headers['cache-control'], 'no-store')
    assert.equal(headers['x-frame-options'], 'DENY')
    assert.doesNotMatch(text, /<script|javascript:|\son[a-z]+=/)
    assert.match(text, /<html lang="en">[\s\S]*<title>[\s\S]*<main><h1>/)
  }
})

test('the cookie of a flow is for this host over TLS alone, and no script reads it', async (t) => {
  const fixture = await VaultFixture.start(t, providers)
  const response = await fetch(`${fixture.url}/v1/connect/hub`, { redirect: 'manual' })
  assert.match(
    response.headers.get('set-cookie') ?? '',
    /^__Host-plat-connect=[A-Za-z0-9_-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600; Secure$/,
  )
  const plain = await VaultFixture.start(t, providers, { vault: { publicBaseURL: 'http://127.0.0.1:8080/gateway/' } })
  const begun = await fetch(`${plain.url}/v1/connect/hub`, { redirect: 'manual' })
  assert.match(
    begun.headers.get('set-cookie') ?? '',
    /^plat-connect=[A-Za-z0-9_-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600$/,
  )
  const to = new URL(begun.headers.get('location') ?? '')
  assert.equal(to.searchParams.get('redirect_uri'), 'http://127.0.0.1:8080/gateway/v1/connect/callback')
})

test('a page of another site cannot send the form', async (t) => {
  const fixture = await VaultFixture.start(t, providers)
  const body = new URLSearchParams({ flow: 'x', action: 'connect' })
  const send = (origin: string) => fetch(`${fixture.url}/v1/connect/hub`, { method: 'POST', body, headers: { origin } })
  assert.equal((await send('https://evil.example')).status, 403)
  assert.equal((await send(PUBLIC)).status, 400, 'nor can one of ours that holds no flow')
})

test('an account whose seal is broken is unusable: its user is prompted to connect it again', async (t) => {
  const fixture = await VaultFixture.start(t, providers)
  await fixture.connect(fixture.browser(), 'ada', 'ada-at-hub')
  await fixture.connect(fixture.browser(), 'mallory', 'mallory-at-hub')
  await fixture.restart({}, async () => {
    const path = `${fixture.dir}/vault.jsonl`
    const lines = (await readFile(path, 'utf8')).trimEnd().split('\n').map(eventOf)
    const [ada, mallory] = lines
    assert.ok(ada !== undefined && mallory !== undefined)
    // Someone with write access to the file gives ada's tokens to mallory, and flips a bit of ada's entry.
    const stolen = { ...mallory, events: [{ ...mallory.events[0], sealed: ada.events[0].sealed }] }
    const [event] = ada.events
    const flipped = { ...event, sealed: { ...event.sealed, data: flip(event.sealed.data) } }
    await writeFile(path, [{ ...ada, events: [flipped] }, stolen].map(lineOf).join(''))
  })
  for (const user of ['ada', 'mallory']) {
    const called = await fixture.callAs(user)
    assert.deepEqual([called.as, called.connectURL], [null, CONNECT])
    assert.match(called.reason, /cannot be opened any more/)
  }
  await fixture.connect(fixture.browser(), 'ada', 'ada-at-hub')
  assert.equal((await fixture.callAs('ada')).as, 'ada-at-hub')
})

/** A line of the journal without its checksum. */
function eventOf(line: string) {
  const { sum: _, ...event } = JSON.parse(line)
  return event
}

function lineOf(event: object): string {
  const body = JSON.stringify(event).slice(1)
  return `{"sum":"${crc32(body).toString(16).padStart(8, '0')}",${body}\n`
}

function flip(data: string): string {
  const bytes = Buffer.from(data, 'base64url')
  bytes[0] = (bytes[0] ?? 0) ^ 1
  return bytes.toString('base64url')
}
