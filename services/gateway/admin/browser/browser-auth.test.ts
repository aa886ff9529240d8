import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SharedPool, systemIds, TestClock } from '@plat/core'
import { createMemoryJournal } from '@plat/state'
import { BrowserAuth } from './browser-auth.ts'
import type { BrowserEvent } from './events.ts'
import { BrowserSessions } from './sessions.ts'
import { cookieIn, cookieName, cookieOf, originOf } from './site.ts'

const ORIGIN = 'https://console.example'

test('roles are those of the grants at each request, and the static token must still be the same', async () => {
  const clock = new TestClock()
  const sessions = await BrowserSessions.open({
    journal: createMemoryJournal<BrowserEvent>(() => clock.now()),
    lookUps: null,
    clock,
    ids: systemIds(clock),
    idleMs: 60_000,
    lifetimeMs: 60_000,
    pool: new SharedPool({ name: 'console_sessions' }),
    onFault: (error) => assert.fail(String(error)),
  })
  const grants = (viewer: readonly string[]) => ({ roles: { viewer }, namespaceRoles: {}, people: {} })
  const authOf = (token: string | null, viewer: readonly string[], hasPeople = true) =>
    new BrowserAuth({ sessions, grants: grants(viewer), token, hasPeople, consoleOrigin: ORIGIN })
  const ada = (await sessions.begin({ user: 'ada', groups: ['staff'] }, null)).secret
  const holder = (await sessions.begin(null, 'first')).secret
  const request = (secret: string) => ({
    ip: '127.0.0.1',
    method: 'GET',
    protocol: 'http' as const,
    headers: { host: 'console.example', cookie: `__Host-plat-console=${secret}` },
  })
  const identified = async (auth: BrowserAuth, secret: string) =>
    (await auth.identify(request(secret), secret)).principal
  assert.equal(authOf('first', []).secretIn(request(ada)), ada)
  assert.deepEqual([...(await identified(authOf('first', ['staff']), ada)).roles], ['viewer'])
  assert.deepEqual([...(await identified(authOf('first', ['others']), ada)).roles], [])
  assert.equal((await identified(authOf('first', []), holder)).by, 'token:admin')
  await assert.rejects(identified(authOf('second', []), holder), /has ended/)
  await assert.rejects(identified(authOf(null, []), holder), /has ended/)
  await assert.rejects(identified(authOf('first', ['staff'], false), ada), /has ended/)
})

test('the console has the origin of consoleURL or of a loopback name, and no other', () => {
  for (const host of ['console.example', 'CONSOLE.example']) assert.equal(originOf(host, false, ORIGIN), ORIGIN)
  assert.equal(originOf('127.0.0.1:8080', false, ORIGIN), 'http://127.0.0.1:8080')
  assert.equal(originOf('localhost:8443', true, null), 'https://localhost:8443')
  assert.equal(originOf('[::1]:8080', false, null), 'http://[::1]:8080')
  for (const host of [
    undefined,
    '',
    'evil.example',
    'console.example:8443',
    'console.example.evil.example',
    '127.0.0.1.evil.example',
    'localhost.evil.example',
  ])
    assert.equal(originOf(host, false, ORIGIN), null, String(host))
})

test('cookies of gateways on one machine have different names, and each is read by its whole name', () => {
  assert.equal(cookieName(ORIGIN), '__Host-plat-console')
  assert.deepEqual(
    [cookieName('http://localhost:8080'), cookieName('http://[::1]')],
    ['__Host-plat-console-8080', '__Host-plat-console-default'],
  )
  assert.equal(cookieIn('a=1; __Host-plat-console-1=x; __Host-plat-console=y', '__Host-plat-console'), 'y')
  assert.equal(cookieIn('not__Host-plat-console=y', '__Host-plat-console'), null)
  assert.equal(cookieOf('n', 'v', 9, 'Lax'), 'n=v; Path=/; Max-Age=9; Secure; HttpOnly; SameSite=Lax')
})
