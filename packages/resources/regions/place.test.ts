import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jurisdictionOf, placeContradictions } from './place.ts'
import { REGIONS } from './table.ts'

const jurisdictionOfRegion = (region: string) => jurisdictionOf({ provider: 'vertex', region }, null)

test('each region of the table maps to its country, and none is duplicated', () => {
  const seen = new Set<string>()
  for (const countries of Object.values(REGIONS)) {
    for (const [country, names] of Object.entries(countries)) {
      assert.match(country, /^[A-Z]{2}$/)
      for (const name of names.split(/\s+/)) {
        assert.match(name, /^[a-z][a-z0-9-]{1,40}$/)
        assert.equal(jurisdictionOfRegion(name), country, name)
        assert.ok(!seen.has(name), name)
        seen.add(name)
      }
    }
  }
})

test('regions whose names mislead are in the right country; an unknown region has no jurisdiction', () => {
  const expected = {
    'eu-central-2': 'CH',
    'eu-west-2': 'GB',
    'europe-west2': 'GB',
    'europe-west6': 'CH',
    'eu-zurich-1': 'CH',
    'eu-jovanovac-1': 'RS',
    westeurope: 'NL',
    eastasia: 'HK',
    'us-gov-west-1': 'US',
    eu: 'EU',
    global: 'anywhere',
    'eu-central-99': null,
    constructor: null,
  }
  for (const [region, country] of Object.entries(expected)) assert.equal(jurisdictionOfRegion(region), country, region)
})

const bedrock = (region: string, jurisdiction = '') => ({ provider: 'bedrock', region, jurisdiction })
const ARN = 'arn:aws:bedrock:eu-central-1:123456789012'

test('a model of Bedrock widens the region to what its inference profile guarantees', () => {
  const cases: [region: string, model: string | null, jurisdiction: string | null][] = [
    ['us-east-1', null, 'US'],
    ['eu-central-1', 'amazon.nova-lite-v1:0', 'DE'],
    ['eu-central-1', 'zai.glm-4.7', 'DE'],
    ['eu-central-1', 'eu.amazon.nova-lite-v1:0', 'EU'],
    ['eu-central-2', 'eu.amazon.nova-lite-v1:0', 'anywhere'],
    ['us-east-1', 'us.anthropic.claude-sonnet-4', 'US'],
    ['us-gov-west-1', 'us-gov.anthropic.claude-sonnet-4', 'US'],
    ['eu-central-1', 'global.anthropic.claude-sonnet-4', 'anywhere'],
    ['ap-northeast-1', 'apac.amazon.nova-lite-v1:0', 'anywhere'],
    ['ap-northeast-1', 'jp.anthropic.claude-sonnet-4', 'JP'],
    ['eu-central-1', 'xx.amazon.nova-lite-v1:0', 'anywhere'],
    ['eu-central-1', `${ARN}:provisioned-model/abc`, 'DE'],
    ['eu-central-1', 'arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-lite-v1:0', 'anywhere'],
    ['eu-central-1', `${ARN}:inference-profile/eu.amazon.nova-lite-v1:0`, 'EU'],
    ['eu-central-1', `${ARN}:inference-profile/global.amazon.nova-lite-v1:0`, 'anywhere'],
    ['eu-central-1', `${ARN}:application-inference-profile/abc`, 'anywhere'],
    ['', 'arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-lite-v1:0', 'US'],
    ['eu-central-99', 'amazon.nova-lite-v1:0', null],
  ]
  for (const [region, model, jurisdiction] of cases) {
    assert.equal(jurisdictionOf(bedrock(region), model), jurisdiction, `${region} ${model}`)
    assert.equal(jurisdictionOf({ ...bedrock(region), provider: 'anthropic', mode: 'bedrock' }, model), jurisdiction)
  }
})

test("the region in a cloud's URL wins, whatever the provider", () => {
  const cases = {
    'https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1': 'US',
    'https://vpce-1.bedrock-runtime.eu-west-3.vpce.amazonaws.com/openai/v1': 'FR',
    'https://europe-west3-aiplatform.googleapis.com/v1': 'DE',
    'https://aiplatform.googleapis.com/v1': 'anywhere',
    'https://aiplatform.googleapis.com/v1/projects/p/locations/us-central1/endpoints/openapi': 'US',
    'https://aiplatform.eu.rep.googleapis.com/v1': 'EU',
    'https://inference.generativeai.eu-frankfurt-1.oci.oraclecloud.com/openai/v1': 'DE',
    'https://westeurope.api.cognitive.microsoft.com/openai/v1': 'NL',
    'https://us-east-1.example.com/v1': null,
  }
  for (const [upstream, jurisdiction] of Object.entries(cases)) {
    assert.equal(jurisdictionOf({ upstream }, 'm'), jurisdiction, upstream)
  }
})

test('a stated jurisdiction is used only if region and model do not contradict it', () => {
  assert.equal(jurisdictionOf(bedrock('eu-central-1', 'EU'), null), 'DE')
  assert.equal(jurisdictionOf(bedrock('us-west-1', 'US-CA'), null), 'US-CA')
  assert.equal(jurisdictionOf(bedrock('us-east-1', 'DE'), null), 'US')
  assert.equal(jurisdictionOf(bedrock('eu-central-1', 'DE'), 'eu.amazon.nova-lite-v1:0'), 'EU')
  assert.equal(jurisdictionOf(bedrock('eu-central-99', 'DE'), null), 'DE')
})

test('contradictions of region, URL or model are named by key', () => {
  const messagesOf = (...args: Parameters<typeof placeContradictions>) =>
    placeContradictions(...args).map(([key, message]) => `${key} ${message}`)
  assert.deepEqual(messagesOf(bedrock('eu-central-1', 'EU'), null), [])
  assert.deepEqual(messagesOf(bedrock('us-west-1', 'US-CA'), null), [])
  assert.deepEqual(messagesOf(bedrock('us-east-1', 'DE'), null), [
    'jurisdiction is DE, but by region and model requests are processed in US: correct it or leave it out',
  ])
  assert.deepEqual(messagesOf(bedrock('eu-central-1', 'DE'), 'global.amazon.nova'), [
    'jurisdiction is DE, but by region and model requests may be processed anywhere: correct it or leave it out',
  ])
  const upstream = 'https://bedrock-runtime.us-east-1.amazonaws.com'
  assert.deepEqual(messagesOf({ ...bedrock('eu-central-1'), upstream }, null), [
    'region is eu-central-1, but the upstream or the model names us-east-1',
  ])
  assert.deepEqual(messagesOf(bedrock('eu-central-1'), 'arn:aws:bedrock:us-east-1::foundation-model/m'), [
    'region is eu-central-1, but the upstream or the model names us-east-1',
  ])
})
