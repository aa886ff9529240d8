import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { freePort, tempFolder } from '@plat/testkit/local'
import { startLog } from '@plat/testkit/transparency-log'
import type { Page } from 'playwright-core'
import { axeViolations } from './chromium.ts'
import { startConsole, type TestConsole } from './gateway.ts'
import { openPage, openStory, type Story, TIMEOUT, waitForOutcomes } from './story.ts'

/** Clients at the identity provider, which is also that of the accounts here. */
const CLIENTS = { login: '/v1/connect/callback', hub: '/v1/connect/hub/callback' }
/** Pages that connecting an account shows at most. */
const MAX_PAGES = 12

interface Receivers {
  /** URL of the audit sink `siem`; nothing listens there yet. */
  readonly sink: string
  readonly log: { readonly url: string; readonly keyFile: string }
}

/** A gateway with a sink, a transparency log and accounts of users. */
async function start(t: TestContext, { sink, log }: Receivers): Promise<TestConsole> {
  const dir = tempFolder()
  const put = async (name: string, text: string) => {
    await writeFile(join(dir, name), text, { mode: 0o600 })
    return join(dir, name)
  }
  const secret = randomBytes(24).toString('hex')
  const keyURI = await put('vault.key', randomBytes(32).toString('base64'))
  const clientSecretFile = await put('client.secret', secret)
  const plat = await startConsole({
    clients: (origin) =>
      Object.entries(CLIENTS).map(([client_id, path]) => ({
        ...{ client_id, client_secret: secret, redirect_uris: [origin + path] },
        ...{ grant_types: ['authorization_code', 'refresh_token'], token_endpoint_auth_method: 'client_secret_basic' },
      })),
    additions: ({ origin, issuer }) => ({
      gateway: {
        auditSinks: [{ name: 'siem', type: 'http', url: sink }],
        transparencyLog: { enabled: true, url: log.url, api: 'v1', intervalSeconds: 0, publicKeyFiles: [log.keyFile] },
        tokenVault: {
          ...{ enabled: true, keyURI, storePath: join(dir, 'vault.jsonl'), publicBaseURL: origin },
          login: { issuer, clientID: 'login', clientSecretFile },
          providers: [
            {
              ...{ name: 'hub', issuer, clientID: 'hub', clientSecretFile, scopes: ['openid'] },
              allowedServers: ['default/notes'],
            },
          ],
        },
      },
    }),
  })
  t.after(() => plat.close())
  return plat
}

/** Connects the account of a user, on the pages of the gateway and of the identity provider. */
async function connectAccount(page: Page, { origin, provider }: TestConsole, person: string): Promise<void> {
  await page.goto(`${origin}/v1/connect/hub`)
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const connected = page.getByText(/is connected/)
    const consent = page.getByRole('button', { name: 'Connect', exact: true })
    const form = page.locator(`form[action^="${provider}/interaction/"]`)
    await connected.or(consent).or(form).first().waitFor()
    if (await connected.isVisible()) return
    const before = await page.locator('form').getAttribute('action')
    if (await consent.isVisible()) await consent.click()
    else {
      const name = form.locator('input[name=login]')
      if ((await name.count()) > 0) {
        await name.fill(person)
        await form.locator('input[name=password]').fill('any')
      }
      await form.locator('button[type=submit]').click()
    }
    await page.locator(`form[action="${before}"]`).waitFor({ state: 'detached' })
  }
  throw new Error('the account was not connected')
}

async function assertFine({ page, assertCalm }: Story, where: string): Promise<void> {
  assert.deepEqual(await axeViolations(page), [], where)
  await assertCalm(where)
}

test(
  'a sink that fails and delivers again, an anchored record, and accounts of users are displayed',
  TIMEOUT,
  async (t) => {
    const port = await freePort()
    const log = await startLog(t)
    const plat = await start(t, { sink: `http://127.0.0.1:${port}/`, log })
    await plat.callTool({ session: 'state', tool: 'add_note', args: { name: 'a', text: 'x' } })
    await waitForOutcomes(plat, 'state')
    const story = await openStory(t, plat)
    const { page, open } = story

    await t.test('the page Now says that the sink fails, and without a reload that it delivers again', async () => {
      await open('now')
      const sink = page.locator('.facts > div', { hasText: 'Audit sink siem' })
      await sink.getByText('delivery fails, repeated').waitFor()
      await sink.getByText(/[1-9]\d* records? behind/).waitFor()
      await assertFine(story, 'a failing sink')
      const receiver = createServer((request, response) => request.resume().on('end', () => response.end()))
      await new Promise<void>((resolve) => receiver.listen(port, '127.0.0.1', resolve))
      t.after(() => receiver.close())
      await sink.getByText('delivers').waitFor()
      await sink.getByText('0 records behind').waitFor()
    })

    await t.test(
      'a record below an anchored checkpoint names the log and the entry, a later one says that it has none',
      async () => {
        const { status, text } = await plat.admin('POST', '/v1/audit/anchors').then(async (response) => ({
          status: response.status,
          text: await response.text(),
        }))
        assert.equal(status, 200, text)
        await open('ledger/1')
        const anchor = page.getByRole('listitem').filter({ hasText: 'is in the transparency log' })
        await anchor.getByText(log.url).waitFor()
        assert.ok(JSON.parse(text).upTo >= 1)
        await anchor.getByText(`the first ${JSON.parse(text).upTo + 1} records`).waitFor()
        await assertFine(story, 'an anchored record')
        await open(`ledger/${JSON.parse(text).seq}`)
        await page.getByText('not anchored').waitFor()
      },
    )

    await t.test('connected accounts are listed by user and provider, without their tokens', async () => {
      await open('access')
      await page.getByText('No user has connected an account').waitFor()
      await connectAccount(await openPage(t, plat), plat, 'uma')
      await open('access')
      await page.getByRole('row', { name: /uma.*hub.*openid/ }).waitFor()
      await assertFine(story, 'connected accounts')
    })
  },
)
