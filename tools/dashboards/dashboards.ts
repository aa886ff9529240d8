/** The six Grafana dashboards, by the areas of the metric tables. @table */

/** One panel that is not only a series of the tables. `expr` has `$job` filters where `{}` is. */
export interface OwnPanel {
  readonly title: string
  readonly description: string
  readonly expr: string
  readonly legend?: string
  readonly unit: 'none' | 'percentunit' | 's' | 'ops'
  readonly kind?: 'stat' | 'timeseries'
}

export interface Row {
  readonly title: string
  /** Shows all series of these areas, with `own` before them. */
  readonly areas?: readonly string[]
  readonly own?: readonly OwnPanel[]
  /** Further series, which have their place in another dashboard too. */
  readonly series?: readonly string[]
}

export interface Dashboard {
  /** Of the file, and end of the UID. */
  readonly name: string
  readonly title: string
  readonly rows: readonly Row[]
}

const health: readonly OwnPanel[] = [
  {
    title: 'Running components',
    description: 'Instances that Prometheus reads, by component and version.',
    expr: 'count by (component, version) (plat_build_info{})',
    legend: '{{component}} {{version}}',
    unit: 'none',
    kind: 'stat',
  },
  {
    title: 'Refused calls',
    description: 'Share of verdicts that deny.',
    expr: 'sum(rate(plat_gateway_decisions_total{action="deny"}[$__rate_interval])) / sum(rate(plat_gateway_decisions_total{}[$__rate_interval]))',
    unit: 'percentunit',
    kind: 'stat',
  },
  {
    title: 'Pending approvals',
    description: 'Calls that wait for a person.',
    expr: 'max(plat_gateway_approvals_pending{})',
    unit: 'none',
    kind: 'stat',
  },
  {
    title: 'Failed upstream calls',
    description: 'Calls without a usable response of their server, as a share of all responses.',
    expr: 'sum(rate(plat_gateway_upstream_errors_total{}[$__rate_interval])) / sum(rate(plat_gateway_requests_total{}[$__rate_interval]))',
    unit: 'percentunit',
    kind: 'stat',
  },
  {
    title: 'Cost of the last hour',
    description: 'Metered cost of all calls, in the currency of the prices.',
    expr: 'sum(delta(plat_gateway_metered_cost_usd{}[1h]))',
    unit: 'none',
    kind: 'stat',
  },
  {
    title: 'Records that were not durable',
    description: 'Failed appends to the ledger; any is a reason to look.',
    expr: 'sum(increase(plat_gateway_audit_errors_total{}[$__range]))',
    unit: 'none',
    kind: 'stat',
  },
]

export const dashboards: readonly Dashboard[] = [
  {
    name: 'overview',
    title: 'plat: overview',
    rows: [
      { title: 'Health', own: health },
      { title: 'Calls', areas: ['Tools'] },
      { title: 'Limits', areas: ['Limits'] },
      { title: 'Tenants', areas: ['Tenants'] },
    ],
  },
  {
    name: 'policy',
    title: 'plat: policy and approvals',
    rows: [
      {
        title: 'Verdicts',
        series: [
          'plat_gateway_decisions_total',
          'plat_gateway_dryrun_decisions_total',
          'plat_gateway_approvals_pending',
        ],
      },
      { title: 'Policies, content and taint', areas: ['Policy'] },
      { title: 'Revocations', areas: ['Revocation'] },
      { title: 'Agents and sandbox tools', areas: ['A2A and sandbox tools'] },
    ],
  },
  {
    name: 'models',
    title: 'plat: models and cost',
    rows: [
      { title: 'Cost and budgets', areas: ['Cost'] },
      { title: 'Model routes', areas: ['Models'] },
      { title: 'OpenTelemetry', areas: ['OpenTelemetry'] },
    ],
  },
  {
    name: 'ledger',
    title: 'plat: ledger and sinks',
    rows: [
      { title: 'Ledger and sinks', areas: ['Audit'] },
      { title: 'Transparency log', areas: ['Transparency log'] },
      { title: 'Offline edges', areas: ['Offline edge'] },
      { title: 'Collector', areas: ['Collector'] },
      { title: 'Ledgers of clients', areas: ['Integrations'] },
    ],
  },
  {
    name: 'operator',
    title: 'plat: operator and sessions',
    rows: [
      { title: 'Sessions and reconciliation', areas: ['Operator'] },
      { title: 'Configuration and state', areas: ['Config and HA'] },
      { title: 'Controllers', areas: ['Standard series of controllers'] },
      { title: 'License', areas: ['Licence'] },
    ],
  },
  {
    name: 'identity',
    title: 'plat: identity',
    rows: [
      {
        title: 'Callers',
        series: [
          'plat_gateway_auth_failures_total',
          'plat_gateway_admin_auth_failures_total',
          'plat_gateway_dpop_requests_total',
          'plat_gateway_trusted_keys',
          'plat_token_mint_seconds',
          'plat_gateway_revoked_total',
        ],
      },
      { title: 'Attestation', areas: ['Attestation service'] },
      { title: 'Key services', areas: ['Keys'] },
    ],
  },
]

/** Labels by which a series with more than two is split; the others are summed up. */
export const splitBy: Readonly<Record<string, readonly string[]>> = {
  plat_gateway_requests_total: ['code'],
  plat_gateway_dlp_hits_total: ['detector', 'action'],
  plat_gateway_guard_checks_total: ['guard', 'outcome'],
  plat_gateway_model_failovers_total: ['route', 'to'],
  plat_gateway_model_endpoint_skipped_total: ['route', 'reason'],
  plat_gateway_a2a_calls_total: ['kind', 'decision'],
  plat_gateway_key_service_failures_total: ['service', 'reason'],
  plat_sessions: ['tier', 'phase'],
  plat_session_phase_transitions_total: ['from', 'to'],
  gen_ai_client_token_usage: ['plat_model_route', 'gen_ai_token_type'],
  gen_ai_client_operation_duration_seconds: ['gen_ai_request_model'],
}

/** Gauges whose replicas add up; of all others the largest is shown. */
export const summed: ReadonlySet<string> = new Set([
  'plat_gateway_pool_used',
  'plat_gateway_mcp_abandoned_calls',
  'plat_gateway_metered_cost_usd',
  'plat_gateway_model_cache_bytes',
  'plat_gateway_otel_queue_length',
  'plat_attest_pool_used',
  'plat_sessions',
  'controller_runtime_active_workers',
])

/** Gauges of one process or one ledger, shown by instance. */
export const perInstance: readonly RegExp[] = [
  /^plat_gateway_audit_(?!collector)/,
  /^plat_gateway_overloaded$/,
  /^(?:process|nodejs)_/,
]
