/** @table Tokens with a vendor prefix: prefix, length and characters. */
import { classOf } from '../scan/scan-state.ts'
import { type Row, secret } from './detector.ts'
import { ALNUM, BASE64, HEX, looksRandom, type TokenRule, token, URLSAFE, WORDS } from './token.ts'

const UPPER = classOf('A-Z0-9')
const AWS_ID = classOf('A-Z2-7')
const POINTED = classOf('A-Za-z0-9_.-')
const PATH = classOf('A-Za-z0-9/_-')
const URL_ENCODED = classOf('A-Za-z0-9%+/=_-')

const vendor = (id: string, finds: string, rule: TokenRule, validated?: string): Row =>
  secret(id, finds, validated ?? 'prefix, length, characters', token(rule))

const isOpenAi = (body: string) => !body.startsWith('ant-') && /\d/.test(body) && looksRandom(body)
const isSlackHook = (body: string) => /^T[A-Z0-9]{5,}\/B[A-Z0-9]{5,}\/[A-Za-z0-9]{16,}$/.test(body)
const isGrafana = (body: string) => /^[A-Za-z0-9]{32}_[0-9a-f]{8}$/.test(body)
const isSendgrid = (body: string) => /^[\w-]{22}\.[\w-]{43}$/.test(body)

export const vendorRows = [
  vendor('aws_access_key_id', 'AWS access key ids', {
    anchors: ['AKIA', 'ASIA', 'ABIA', 'ACCA'],
    of: AWS_ID,
    least: 16,
  }),
  vendor('aws_bedrock_key', 'API keys of Amazon Bedrock', {
    anchors: ['ABSKQmVkcm9ja0FQSUtleS', 'bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t'],
    of: BASE64,
    least: 64,
    most: null,
  }),
  vendor('gcp_api_key', 'API keys of Google Cloud', { anchors: ['AIza'], of: URLSAFE, least: 35 }),
  vendor('google_oauth_secret', 'OAuth client secrets of Google', { anchors: ['GOCSPX-'], of: URLSAFE, least: 28 }),
  vendor('google_oauth_token', 'OAuth access tokens of Google', {
    anchors: ['ya29.'],
    of: POINTED,
    least: 40,
    most: null,
  }),
  vendor('azure_storage_key', 'Account keys of Azure Storage and Cosmos DB', {
    anchors: ['AccountKey='],
    of: BASE64,
    least: 88,
    is: (body) => body.endsWith('==') && looksRandom(body),
  }),
  vendor('azure_sas_token', 'Signatures of shared access signatures', {
    anchors: ['sig='],
    of: URL_ENCODED,
    least: 43,
    most: 80,
    is: (body) => /(?:=|%3[dD])$/.test(body) && looksRandom(body),
  }),
  vendor('github_token', 'Tokens of GitHub: personal, OAuth, app, refresh', {
    anchors: ['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_'],
    of: ALNUM,
    least: 36,
    most: 250,
  }),
  vendor('github_fine_grained_pat', 'Fine-grained personal access tokens of GitHub', {
    anchors: ['github_pat_'],
    of: WORDS,
    least: 82,
  }),
  vendor('gitlab_token', 'Tokens of GitLab: personal, deploy, runner, job, agent', {
    anchors: [
      'glpat-',
      'gldt-',
      'glrt-',
      'glcbt-',
      'glptt-',
      'glft-',
      'glsoat-',
      'glimt-',
      'glagent-',
      'gloas-',
      'GR1348941',
    ],
    of: POINTED,
    least: 20,
    most: 200,
  }),
  vendor('atlassian_token', 'API tokens of Atlassian and Bitbucket', {
    anchors: ['ATATT3', 'ATCTT3', 'ATBB'],
    of: classOf('A-Za-z0-9_=-'),
    least: 32,
    most: 250,
  }),
  vendor('npm_token', 'Access tokens of npm', { anchors: ['npm_'], of: ALNUM, least: 36 }),
  vendor('pypi_token', 'API tokens of PyPI', { anchors: ['pypi-AgEI'], of: URLSAFE, least: 50, most: null }),
  vendor('rubygems_token', 'API keys of RubyGems', { anchors: ['rubygems_'], of: HEX, least: 48 }),
  vendor('nuget_key', 'API keys of NuGet', { anchors: ['oy2'], of: classOf('a-z0-9'), least: 43 }),
  vendor('docker_pat', 'Access tokens of Docker Hub', {
    anchors: ['dckr_pat_', 'dckr_oat_'],
    of: URLSAFE,
    least: 27,
    most: 40,
  }),
  vendor('slack_token', 'Tokens of Slack: bot, user, app, refresh', {
    anchors: ['xoxb-', 'xoxp-', 'xoxa-', 'xoxr-', 'xoxs-', 'xoxe-', 'xoxe.xoxp-', 'xapp-'],
    of: classOf('A-Za-z0-9-'),
    least: 24,
    most: 250,
  }),
  vendor(
    'slack_webhook',
    'Incoming webhooks of Slack',
    { anchors: ['hooks.slack.com/services/'], of: PATH, least: 36, most: 80, is: isSlackHook },
    'team, hook and secret in their places',
  ),
  vendor(
    'discord_webhook',
    'Webhooks of Discord',
    {
      anchors: ['discord.com/api/webhooks/', 'discordapp.com/api/webhooks/'],
      of: PATH,
      least: 70,
      most: 110,
      is: (body) => /^\d{17,20}\/[\w-]{50,}$/.test(body),
    },
    'number and secret in their places',
  ),
  vendor('stripe_key', 'Secret and restricted keys of Stripe, and signing secrets', {
    anchors: ['sk_live_', 'sk_test_', 'rk_live_', 'rk_test_', 'whsec_'],
    of: classOf('A-Za-z0-9+/='),
    least: 20,
    most: 247,
  }),
  vendor('square_token', 'Access tokens and secrets of Square', {
    anchors: ['sq0atp-', 'sq0csp-', 'EAAAE', 'EAAAl'],
    of: URLSAFE,
    least: 22,
    most: 80,
  }),
  vendor('shopify_token', 'Access tokens of Shopify', {
    anchors: ['shpat_', 'shpca_', 'shppa_', 'shpss_'],
    of: classOf('0-9a-fA-F'),
    least: 32,
  }),
  vendor('twilio_key', 'API keys of Twilio', { anchors: ['SK'], of: HEX, least: 32 }),
  vendor(
    'sendgrid_key',
    'API keys of SendGrid',
    { anchors: ['SG.'], of: POINTED, least: 66, is: isSendgrid },
    'both parts with their lengths',
  ),
  vendor('mailgun_key', 'API keys of Mailgun', { anchors: ['key-'], of: HEX, least: 32 }),
  vendor(
    'openai_key',
    'API keys of OpenAI, and of others that begin with `sk-`',
    { anchors: ['sk-'], of: URLSAFE, least: 20, most: 250, is: isOpenAi },
    'prefix, length, digits among the characters',
  ),
  vendor('anthropic_key', 'API keys of Anthropic', { anchors: ['sk-ant-'], of: URLSAFE, least: 20, most: 250 }),
  vendor('huggingface_token', 'Access tokens of Hugging Face', { anchors: ['hf_', 'api_org_'], of: ALNUM, least: 34 }),
  vendor('groq_key', 'API keys of Groq', { anchors: ['gsk_'], of: ALNUM, least: 52 }),
  vendor('xai_key', 'API keys of xAI', { anchors: ['xai-'], of: ALNUM, least: 80 }),
  vendor('perplexity_key', 'API keys of Perplexity', { anchors: ['pplx-'], of: ALNUM, least: 48, most: 56 }),
  vendor('replicate_token', 'API tokens of Replicate', { anchors: ['r8_'], of: ALNUM, least: 37 }),
  vendor('databricks_token', 'Access tokens of Databricks', {
    anchors: ['dapi', 'dose'],
    of: classOf('0-9a-f-'),
    least: 32,
    most: 34,
  }),
  vendor('vault_token', 'Service, batch and recovery tokens of HashiCorp Vault', {
    anchors: ['hvs.', 'hvb.', 'hvr.'],
    of: URLSAFE,
    least: 24,
    most: 250,
  }),
  vendor(
    'terraform_token',
    'API tokens of HCP Terraform',
    { anchors: ['atlasv1.'], of: URLSAFE, least: 60, most: 70 },
    'infix, length behind it',
  ),
  vendor('doppler_token', 'Tokens of Doppler', {
    anchors: ['dp.pt.', 'dp.ct.', 'dp.sa.', 'dp.scim.', 'dp.audit.'],
    of: ALNUM,
    least: 40,
    most: 44,
  }),
  vendor('pulumi_token', 'Access tokens of Pulumi', { anchors: ['pul-'], of: HEX, least: 40 }),
  vendor('digitalocean_token', 'Tokens of DigitalOcean', {
    anchors: ['dop_v1_', 'doo_v1_', 'dor_v1_'],
    of: HEX,
    least: 64,
  }),
  vendor('heroku_key', 'API keys of Heroku', { anchors: ['HRKU-AA'], of: URLSAFE, least: 58 }),
  vendor('netlify_token', 'Access tokens of Netlify', { anchors: ['nfp_'], of: ALNUM, least: 36, most: 40 }),
  vendor('fly_token', 'Access tokens of Fly.io', {
    anchors: ['fo1_', 'fm1_', 'fm2_', 'fm1r_', 'fm1a_'],
    of: classOf('A-Za-z0-9_+/=-'),
    least: 43,
    most: null,
  }),
  vendor(
    'grafana_token',
    'Service account tokens of Grafana',
    { anchors: ['glsa_'], of: WORDS, least: 41, is: isGrafana },
    'both parts with their lengths',
  ),
  vendor('grafana_cloud_token', 'Access policy tokens of Grafana Cloud', {
    anchors: ['glc_eyJ'],
    of: BASE64,
    least: 32,
    most: 250,
  }),
  vendor('newrelic_key', 'User keys of New Relic', { anchors: ['NRAK-'], of: UPPER, least: 27 }),
  vendor('sentry_token', 'Tokens of Sentry', {
    anchors: ['sntryu_', 'sntrys_'],
    of: classOf('A-Za-z0-9_+/='),
    least: 64,
    most: 250,
  }),
  vendor('postman_key', 'API keys of Postman', {
    anchors: ['PMAK-'],
    of: classOf('0-9a-f-'),
    least: 59,
    is: (body) => body[24] === '-' && looksRandom(body),
  }),
  vendor('linear_key', 'API keys of Linear', { anchors: ['lin_api_', 'lin_oauth_'], of: ALNUM, least: 40, most: 64 }),
  vendor('notion_token', 'Integration tokens of Notion', { anchors: ['ntn_'], of: ALNUM, least: 46 }),
  vendor('figma_token', 'Access tokens of Figma', { anchors: ['figd_', 'figo_'], of: URLSAFE, least: 40, most: 50 }),
  vendor('onepassword_token', 'Service account tokens of 1Password', {
    anchors: ['ops_eyJ'],
    of: BASE64,
    least: 100,
    most: null,
  }),
  vendor('planetscale_token', 'Tokens and passwords of PlanetScale', {
    anchors: ['pscale_tkn_', 'pscale_pw_', 'pscale_oauth_'],
    of: POINTED,
    least: 32,
    most: 64,
  }),
  vendor('supabase_token', 'Access tokens and secret keys of Supabase', {
    anchors: ['sbp_', 'sb_secret_'],
    of: URLSAFE,
    least: 31,
    most: 64,
  }),
  vendor('tailscale_key', 'Keys of Tailscale', {
    anchors: ['tskey-auth-', 'tskey-api-', 'tskey-client-', 'tskey-scim-', 'tskey-webhook-'],
    of: classOf('A-Za-z0-9-'),
    least: 20,
    most: 80,
  }),
  vendor('age_secret_key', 'Secret keys of age', { anchors: ['AGE-SECRET-KEY-1'], of: UPPER, least: 58 }),
] as const
