import assert from 'node:assert/strict'
import { test } from 'node:test'
import { confirmPage, connectedPage, failedPage, leavingPage } from './pages.ts'

test('names of users and providers are escaped in pages', () => {
  const evil = `"><script>alert('&')</script>`
  const provider = { name: 'hub', title: evil, scopes: [evil] }
  const pages = [
    confirmPage({ user: evil, tenant: evil, provider, isConnected: true, flow: evil, action: evil }),
    leavingPage(evil, new URL(`https://hub.example/?a=${evil}`)),
    connectedPage(evil, evil),
    failedPage(400, evil, evil),
  ]
  for (const { html } of pages) {
    assert.doesNotMatch(html, /<script|alert\('/)
    assert.match(html, /&lt;script&gt;|%3Cscript%3E/)
  }
})

test('the confirmation page names the tenant whose agents may use the account', () => {
  const question = {
    user: 'ada',
    provider: { name: 'hub', title: 'Hub', scopes: [] },
    isConnected: false,
    flow: '',
    action: '',
  }
  assert.match(
    confirmPage({ ...question, tenant: 'acme' }).html,
    /Agents of the tenant <strong>acme<\/strong> that act/,
  )
  assert.match(confirmPage({ ...question, tenant: '' }).html, /Agents that act/)
})
