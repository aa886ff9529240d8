import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { isDenial } from '../../call/index.ts'
import { checkGatewayConfig } from '../../config.ts'
import { Bindings } from './bindings.ts'
import { DEFAULTS } from './testing/profiles.ts'

const NAMES = ['own', 'server', 'name', 'route', 'space', 'fallback'] as const

const bindings = new Bindings({
  dlpProfiles: Object.fromEntries(NAMES.map((name) => [name, DEFAULTS])),
  dlp: {
    defaultProfile: 'fallback',
    namespaces: { team: 'space', free: 'none' },
    servers: { 'default/notes': 'server', mail: 'name', open: 'none' },
    models: { small: 'route', drafts: 'none' },
  },
})

function profile(kind: 'mcp' | 'model', key: string, namespace: string, own: string | null = null): string {
  const found = bindings.profileOf({ kind, key, server: key }, own, namespace)
  return found === null ? 'none' : isDenial(found) ? found.code : found.name
}

test('the most specific binding applies, and none ends the search', () => {
  // Shows D3.dlp.precedence, D3.dlp.none, D3.dlp.servers, D3.dlp.models, D3.dlp.namespaces, D3.dlp.defaultProfile,
  // D2.server.dlpProfile.precedence.
  assert.equal(profile('mcp', 'default/notes', 'team', 'own'), 'own')
  assert.equal(profile('mcp', 'default/notes', 'team', 'none'), 'none')
  assert.equal(profile('mcp', 'default/notes', 'team'), 'server')
  assert.equal(profile('mcp', 'other/notes', 'team'), 'space')
  assert.equal(profile('mcp', 'any/mail', 'team'), 'name')
  assert.equal(profile('mcp', 'mail', 'default'), 'name')
  assert.equal(profile('mcp', 'any/open', 'team'), 'none')
  assert.equal(profile('mcp', 'default/else', 'free'), 'none')
  assert.equal(profile('mcp', 'default/else', 'default'), 'fallback')
  assert.equal(profile('model', 'small', 'team'), 'route')
  assert.equal(profile('model', 'drafts', 'team'), 'none')
  assert.equal(profile('model', 'mail', 'default'), 'fallback')
  assert.equal(profile('model', 'default.a', 'team'), 'space')
})

test('an unknown profile denies the calls of what names it', () => {
  assert.equal(profile('mcp', 'default/notes', 'team', 'gone'), 'dlp_denied')
})

test('without profiles nothing is scanned', () => {
  const empty = { defaultProfile: '', namespaces: {}, servers: {}, models: {} }
  const none = new Bindings({ dlpProfiles: {}, dlp: empty })
  assert.equal(none.profileOf({ kind: 'mcp', key: 'default/notes', server: 'notes' }, null, 'default'), null)
})

describe('gateway.json', () => {
  const problems = (config: object) => {
    const text = JSON.stringify({
      identity: { jwksURL: 'http://broker.example/jwks' },
      policyFile: 'p',
      upstreams: { notes: 'http://n.example' },
      auditPath: 'a',
      ...config,
    })
    const found = checkGatewayConfig(text).problems
    return found
      .filter(({ severity, path }) => severity === 'error' && /^(?:dlp|models)/.test(path))
      .map(({ path, message }) => `${path}: ${message}`)
  }

  test('bindings must name existing profiles, and profiles existing detectors', () => {
    assert.deepEqual(
      problems({ dlpProfiles: { standard: { detectors: ['email'] } }, dlp: { defaultProfile: 'standard' } }),
      [],
    )
    assert.deepEqual(
      problems({
        dlpProfiles: { standard: { detectors: ['emails'] }, none: {} },
        dlp: { defaultProfile: 'standart', servers: { a: 'none', b: 'x' } },
        models: { m: { upstream: 'http://m.example/v1', dlpProfile: 'standrad' } },
      }).sort(),
      [
        'dlp.defaultProfile: no profile standart in dlpProfiles, did you mean standard?',
        'dlp.servers.b: no profile x in dlpProfiles',
        'dlpProfiles.none: none switches detection off: choose another name',
        'dlpProfiles.standard.detectors[0]: unknown detector emails, did you mean email?',
        'models.m.dlpProfile: no profile standrad in dlpProfiles, did you mean standard?',
      ],
    )
  })

  test('a custom detector needs a unique name and a linear expression', () => {
    // Shows D3.dlp.profile.custom.
    const custom = [
      { id: 'email', regex: 'x' },
      { id: 'mine', regex: '(?=x)' },
      { id: 'mine', regex: 'x*' },
      { id: 'good', regex: 'KD-[0-9]{6}', secret: true },
    ]
    const found = problems({ dlpProfiles: { p: { custom } } })
    assert.equal(found.length, 4)
    assert.match(found[0] ?? '', /^dlpProfiles\.p\.custom\[0\]\.id: there is a detector email already/)
    assert.match(found[1] ?? '', /^dlpProfiles\.p\.custom\[1\]\.regex: invalid expression: .*\(\?=/)
    assert.match(found.slice(2).join(), /custom\[2\]\.id: .*custom\[2\]\.regex: .*matches the empty text/)
  })
})
