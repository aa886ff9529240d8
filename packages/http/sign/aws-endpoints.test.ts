import assert from 'node:assert/strict'
import { test } from 'node:test'
import { awsDomain, stsOrigin } from './aws-endpoints.ts'

test('the endpoints of a region are in the domain of its partition', () => {
  const domains = {
    'eu-central-1': 'amazonaws.com',
    'us-gov-west-1': 'amazonaws.com',
    'cn-north-1': 'amazonaws.com.cn',
    'eusc-de-east-1': 'amazonaws.eu',
    'us-iso-east-1': 'c2s.ic.gov',
    'us-isob-east-1': 'sc2s.sgov.gov',
  }
  for (const [region, domain] of Object.entries(domains)) {
    assert.equal(awsDomain(region), domain)
    assert.equal(stsOrigin(region), `https://sts.${region}.${domain}`)
  }
  assert.equal(awsDomain('eu-central-1', 'aws.example'), 'aws.example')
  assert.equal(stsOrigin(''), 'https://sts.amazonaws.com')
})
