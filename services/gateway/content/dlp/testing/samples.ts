/** For each detector a text that it finds, with required context words, and a near miss. @table */
export interface Sample {
  readonly id: string
  readonly finds: string
  readonly misses: string
  /** Text before both. */
  readonly near?: string
  /** Text after both. */
  readonly after?: string
}

const base64 = (text: string) => Buffer.from(text).toString('base64')
const base64url = (text: string) => Buffer.from(text).toString('base64url')

/** Not a real key: characters that look random. */
const RANDOM = 'q7Zp2mXw9KcR4tYb6NvL8sHd3JfG5kQa1ThW0eUi'
export const random = (length: number, of = RANDOM) => of.repeat(Math.ceil(length / of.length)).slice(0, length)
const HEXADECIMAL = '3f9a0c7be2d815648a1f'
const hex = (length: number) => random(length, HEXADECIMAL)
const upper = (length: number) => random(length, RANDOM.toUpperCase())
const lower = (length: number) => random(length, RANDOM.toLowerCase())

const KEY_LINE = random(64)
export const PEM = `-----BEGIN PRIVATE KEY-----\n${KEY_LINE}\n${KEY_LINE}\n-----END PRIVATE KEY-----`
export const JWT = `${base64url('{"alg":"EdDSA","typ":"JWT"}')}.${base64url('{"sub":"alice"}')}.${random(86)}`

export const samples: readonly Sample[] = [
  { id: 'gcp_service_account_key', near: '"private_key": "', finds: PEM, misses: PEM.replace('PRIVATE', 'PUBLIC') },
  { id: 'private_key', finds: PEM, misses: '-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----' },
  { id: 'jwt', finds: JWT, misses: `${base64url('{"typ":"JWT"}')}.${random(20)}.${random(43)}` },
  { id: 'url_credentials', near: 'postgres://', after: '@db.example/app', finds: 'app:s3cr3t', misses: 'app' },
  {
    id: 'basic_auth_header',
    near: 'Authorization: Basic ',
    finds: base64('alice:open sesame'),
    misses: base64('no colon in here'),
  },
  { id: 'bearer_header', near: 'Authorization: Bearer ', finds: random(32), misses: 'tokens-are-opaque-text-here' },
  { id: 'aws_secret_access_key', near: 'aws_secret_access_key = ', finds: random(40), misses: random(41) },
  { id: 'azure_client_secret', near: 'abc', finds: `8Q~${random(34)}`, misses: `8Q~${random(20)}` },
  { id: 'telegram_bot_token', finds: `110201543:AA${random(33)}`, misses: `110201543:BB${random(33)}` },
  { id: 'aws_access_key_id', finds: 'AKIAIOSFODNN7EXAMPLE', misses: 'AKIAIOSFODNN7EXAMPL' },
  {
    id: 'aws_bedrock_key',
    finds: `ABSKQmVkcm9ja0FQSUtleS${random(90)}`,
    misses: `ABSKQmVkcm9ja0FQSUtleS${random(30)}`,
  },
  { id: 'gcp_api_key', finds: `AIza${random(35)}`, misses: `AIza${random(34)}` },
  { id: 'google_oauth_secret', finds: `GOCSPX-${random(28)}`, misses: `GOCSPX-${random(27)}` },
  { id: 'google_oauth_token', finds: `ya29.${random(120)}`, misses: `ya29.${random(12)}` },
  {
    id: 'azure_storage_key',
    near: 'AccountName=a;',
    finds: `AccountKey=${random(86)}==`,
    misses: `AccountKey=${random(40)}==`,
  },
  {
    id: 'azure_sas_token',
    near: 'https://a.blob.core.windows.net/c?sv=2024-11-04&',
    finds: `sig=${random(43)}%3D`,
    misses: `sig=${random(20)}`,
  },
  { id: 'github_token', finds: `ghp_${random(36)}`, misses: `ghp_${'x'.repeat(36)}` },
  {
    id: 'github_fine_grained_pat',
    finds: `github_pat_${random(22)}_${random(59)}`,
    misses: `github_pat_${random(40)}`,
  },
  { id: 'gitlab_token', finds: `glpat-${random(20)}`, misses: `glpat-${random(19)}` },
  { id: 'atlassian_token', finds: `ATATT3${random(180)}`, misses: `ATATT3${random(12)}` },
  { id: 'npm_token', finds: `npm_${random(36)}`, misses: `npm_${random(35)}` },
  { id: 'pypi_token', finds: `pypi-AgEIcHlwaS5vcmc${random(150)}`, misses: `pypi-AgEI${random(20)}` },
  { id: 'rubygems_token', finds: `rubygems_${hex(48)}`, misses: `rubygems_${hex(47)}` },
  { id: 'nuget_key', finds: `oy2${lower(43)}`, misses: `oy2${lower(42)}` },
  { id: 'docker_pat', finds: `dckr_pat_${random(27)}`, misses: `dckr_pat_${random(12)}` },
  { id: 'slack_token', finds: `xoxb-123456789012-${random(24)}`, misses: 'xoxb-short' },
  {
    id: 'slack_webhook',
    near: 'https://',
    finds: `hooks.slack.com/services/T0AB12CD3/B0AB12CD3/${random(24)}`,
    misses: 'hooks.slack.com/services/T0AB12CD3',
  },
  {
    id: 'discord_webhook',
    near: 'https://',
    finds: `discord.com/api/webhooks/123456789012345678/${random(68)}`,
    misses: 'discord.com/api/webhooks/1/2',
  },
  { id: 'stripe_key', finds: `sk_live_${random(24)}`, misses: 'sk_live_short' },
  { id: 'square_token', finds: `sq0atp-${random(22)}`, misses: `sq0atp-${random(9)}` },
  { id: 'shopify_token', finds: `shpat_${hex(32)}`, misses: `shpat_${hex(31)}` },
  { id: 'twilio_key', finds: `SK${hex(32)}`, misses: `SK${hex(31)}` },
  { id: 'sendgrid_key', finds: `SG.${random(22)}.${random(43)}`, misses: `SG.${random(21)}.${random(44)}` },
  { id: 'mailgun_key', finds: `key-${hex(32)}`, misses: 'key-value' },
  { id: 'openai_key', finds: `sk-proj-${random(120)}`, misses: 'sk-learn-and-other-long-names' },
  { id: 'anthropic_key', finds: `sk-ant-api03-${random(95)}`, misses: 'sk-ant-short' },
  { id: 'huggingface_token', finds: `hf_${random(34)}`, misses: `hf_${random(20)}` },
  { id: 'groq_key', finds: `gsk_${random(52)}`, misses: `gsk_${random(51)}` },
  { id: 'xai_key', finds: `xai-${random(80)}`, misses: `xai-${random(40)}` },
  { id: 'perplexity_key', finds: `pplx-${random(48)}`, misses: `pplx-${random(12)}` },
  { id: 'replicate_token', finds: `r8_${random(37)}`, misses: `r8_${random(36)}` },
  { id: 'databricks_token', finds: `dapi${hex(32)}`, misses: `dapi${hex(31)}` },
  { id: 'vault_token', finds: `hvs.${random(91)}`, misses: 'hvs.config' },
  { id: 'terraform_token', near: `${random(14)}.`, finds: `atlasv1.${random(67)}`, misses: `atlasv1.${random(12)}` },
  { id: 'doppler_token', finds: `dp.pt.${random(43)}`, misses: `dp.pt.${random(12)}` },
  { id: 'pulumi_token', finds: `pul-${hex(40)}`, misses: `pul-${hex(39)}` },
  { id: 'digitalocean_token', finds: `dop_v1_${hex(64)}`, misses: `dop_v1_${hex(63)}` },
  { id: 'heroku_key', finds: `HRKU-AA${random(58)}`, misses: `HRKU-AA${random(20)}` },
  { id: 'netlify_token', finds: `nfp_${random(36)}`, misses: `nfp_${random(20)}` },
  { id: 'fly_token', finds: `fo1_${random(43)}`, misses: 'fo1_short' },
  { id: 'grafana_token', finds: `glsa_${random(32)}_${hex(8)}`, misses: `glsa_${random(32)}` },
  { id: 'grafana_cloud_token', finds: `glc_eyJ${random(80)}`, misses: 'glc_eyJ0' },
  { id: 'newrelic_key', finds: `NRAK-${upper(27)}`, misses: `NRAK-${upper(26)}` },
  { id: 'sentry_token', finds: `sntryu_${hex(64)}`, misses: `sntryu_${hex(32)}` },
  { id: 'postman_key', finds: `PMAK-${hex(24)}-${hex(34)}`, misses: `PMAK-${hex(24)}-${hex(33)}` },
  { id: 'linear_key', finds: `lin_api_${random(40)}`, misses: `lin_api_${random(20)}` },
  { id: 'notion_token', finds: `ntn_${random(46)}`, misses: `ntn_${random(20)}` },
  { id: 'figma_token', finds: `figd_${random(40)}`, misses: `figd_${random(20)}` },
  { id: 'onepassword_token', finds: `ops_eyJ${random(600)}`, misses: `ops_eyJ${random(20)}` },
  { id: 'planetscale_token', finds: `pscale_tkn_${random(43)}`, misses: 'pscale_tkn_x' },
  { id: 'supabase_token', finds: `sbp_${hex(40)}`, misses: 'sbp_x' },
  { id: 'tailscale_key', finds: `tskey-auth-${random(32)}`, misses: 'tskey-auth-x' },
  { id: 'age_secret_key', finds: `AGE-SECRET-KEY-1${upper(58)}`, misses: `AGE-SECRET-KEY-1${upper(20)}` },
  { id: 'credit_card', finds: '4111 1111 1111 1111', misses: '4111 1111 1111 1112' },
  { id: 'iban', finds: 'DE89370400440532013000', misses: 'DE89370400440532013001' },
  { id: 'us_ssn', finds: '536-22-8726', misses: '666-22-8726' },
  { id: 'us_itin', finds: '912-70-1234', misses: '912-69-1234' },
  { id: 'us_aba_routing', near: 'routing number ', finds: '021000021', misses: '021000022' },
  { id: 'us_npi', near: 'NPI ', finds: '1234567893', misses: '1234567894' },
  { id: 'ar_cuit', finds: '20-12345678-6', misses: '20-12345678-7' },
  { id: 'au_abn', near: 'ABN ', finds: '51 824 753 556', misses: '51 824 753 557' },
  { id: 'au_tfn', near: 'TFN ', finds: '876543210', misses: '876543211' },
  { id: 'be_nrn', finds: '85.07.30-033.28', misses: '85.07.30-033.29' },
  { id: 'br_cnpj', finds: '11.222.333/0001-81', misses: '11.222.333/0001-82' },
  { id: 'br_cpf', finds: '529.982.247-25', misses: '529.982.247-26' },
  { id: 'ca_sin', near: 'SIN ', finds: '130 692 544', misses: '130 692 545' },
  { id: 'ch_ahv', finds: '756.9217.0769.85', misses: '756.9217.0769.86' },
  { id: 'cl_rut', finds: '12.345.678-5', misses: '12.345.678-6' },
  { id: 'cn_resident_id', finds: '11010519491231002X', misses: '110105194912310021' },
  { id: 'cz_rodne_cislo', finds: '736028/5163', misses: '736028/5164' },
  { id: 'de_tax_id', near: 'Steuer-ID ', finds: '86095742719', misses: '86095742718' },
  { id: 'es_dni', finds: '12345678Z', misses: '12345678A' },
  { id: 'es_nie', finds: 'X1234567L', misses: 'X1234567A' },
  { id: 'fi_hetu', finds: '131052-308T', misses: '131052-308U' },
  { id: 'fr_nir', finds: '2 55 08 14 168 025 38', misses: '2 55 08 14 168 025 39' },
  { id: 'in_aadhaar', near: 'Aadhaar ', finds: '2341 2341 2346', misses: '2341 2341 2347' },
  { id: 'in_pan', near: 'PAN: ', finds: 'ABCPE1234F', misses: 'ABCDE1234F' },
  { id: 'it_codice_fiscale', finds: 'RSSMRA85T10A562S', misses: 'RSSMRA85T10A562T' },
  { id: 'mx_curp', finds: 'HEGG560427MVZRRL04', misses: 'HEGG560427MVZRRL05' },
  { id: 'nl_bsn', near: 'BSN ', finds: '111222333', misses: '111222334' },
  { id: 'no_fnr', finds: '01019040034', misses: '01019040035' },
  { id: 'pl_pesel', near: 'PESEL ', finds: '44051401359', misses: '44051401358' },
  { id: 'pt_nif', near: 'NIF ', finds: '123456789', misses: '123456788' },
  { id: 'se_personnummer', finds: '811228-9874', misses: '811228-9875' },
  { id: 'sg_nric', finds: 'S1234567D', misses: 'S1234567A' },
  { id: 'tr_tckn', near: 'TC ', finds: '10000000146', misses: '10000000147' },
  { id: 'uk_nhs', near: 'NHS number ', finds: '943 476 5919', misses: '943 476 5918' },
  { id: 'uk_nino', near: 'NI ', finds: 'AB123456C', misses: 'QQ123456C' },
  { id: 'za_id', finds: '8001015009087', misses: '8001015009088' },
  { id: 'email', finds: 'alice.b+tag@mail.example.com', misses: 'alice at example.com' },
  { id: 'phone_e164', finds: '+49 (30) 1234-5678', misses: '+49 30' },
  { id: 'ipv4_private', finds: '192.168.17.4', misses: '193.168.17.4' },
  { id: 'high_entropy_secret', finds: random(40), misses: 'a'.repeat(40) },
]
