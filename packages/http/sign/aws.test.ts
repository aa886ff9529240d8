import assert from 'node:assert/strict'
import { test } from 'node:test'
import { signAws } from './aws.ts'

const credentials = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  sessionToken: null,
}
const at = Date.UTC(2015, 7, 30, 12, 36, 0)
const plain = { method: 'GET', body: '', region: 'us-east-1', service: 'service', at }
const signatureOf = ({ authorization }: Record<string, string>) =>
  /SignedHeaders=(\S+), Signature=(\w{64})$/.exec(authorization ?? '')?.slice(1)

test('requests of the published test suite get the published signatures', () => {
  const url = new URL('https://example.amazonaws.com/')
  assert.deepEqual(signAws({ ...plain, url }, credentials), {
    'x-amz-date': '20150830T123600Z',
    authorization:
      'AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, ' +
      'Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31',
  })
  const posted = signAws({ ...plain, method: 'POST', url }, credentials)
  assert.deepEqual(signatureOf(posted), [
    'host;x-amz-date',
    '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b',
  ])
})

// Reference values: @smithy/signature-v4 5.7.5 for the same requests.
test('an encoded path, temporary credentials, a port, and a query of every kind are signed as AWS reads them', () => {
  const host = 'https://bedrock-runtime.eu-central-1.amazonaws.com'
  const url = new URL(`${host}/guardrail/arn%3Aaws%3Abedrock%3Aeu%3A1%3Aguardrail%2Fab1/version/DRAFT/apply`)
  const headers = { 'content-type': 'application/json' }
  const bedrock = {
    ...plain,
    method: 'POST',
    url,
    headers,
    body: '{"a":"ü"}',
    region: 'eu-central-1',
    service: 'bedrock',
  }
  const signed = signAws(bedrock, { ...credentials, sessionToken: 'tok/en+=' })
  assert.equal(signed['x-amz-security-token'], 'tok/en+=')
  assert.deepEqual(signatureOf(signed), [
    'content-type;host;x-amz-date;x-amz-security-token',
    'e4b69dd86c9c0ef8752a1aed91f4927add3f9b45aabd39bbec374a9e743783d6',
  ])
  const odd = new URL('https://sts.amazonaws.com:8443/a%20b/c*d?b=2&a=%2Fx%20y&a=!%27()*&c')
  assert.deepEqual(
    signatureOf(signAws({ ...plain, url: odd, service: 'sts', headers: { 'x-thing': '  a   b ' } }, credentials)),
    ['host;x-amz-date;x-thing', '6eaf615836903d5d2c2a354c16b4dcd85c786353db223b1d10208fa52c10b268'],
  )
})
