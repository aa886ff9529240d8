/** Every series of document 3, with its labels where the document gives a closed meaning. @table */
import type { Section } from './row.ts'

export const document3Metrics: readonly Section[] = [
  {
    section: 'exposition',
    heading: 'Metrics',
    keys: `gatewayPort adminPort operatorPort attestationPort brokerOnlyBuildInfo noSeriesBeforeFirstEvent optionalFeaturesOnly
      buildInfo.labels buildInfo.one`,
  },
  {
    section: 'metric',
    heading: 'Metrics, all components and gateway',
    keys: `plat_build_info plat_gateway_decisions_total plat_gateway_requests_total plat_gateway_upstream_latency_seconds
      plat_gateway_upstream_errors_total plat_gateway_upstreams_configured plat_gateway_auth_failures_total plat_gateway_trusted_keys
      plat_gateway_tool_pin_events_total plat_gateway_svid_checks_total plat_gateway_dpop_requests_total plat_gateway_policies_loaded
      plat_gateway_policy_revision plat_gateway_policy_reloads_total plat_gateway_dryrun_decisions_total plat_gateway_cedar_available
      plat_gateway_cedar_policies_unavailable plat_gateway_rego_evaluations_total plat_gateway_approvals_pending
      plat_gateway_taint_events_total plat_gateway_tainted_sessions plat_gateway_guard_checks_total plat_gateway_guard_blocked_total
      plat_gateway_guard_latency_seconds plat_gateway_arg_captures_total plat_gateway_dlp_hits_total plat_gateway_revoked_total
      plat_gateway_revocations_active plat_gateway_revocation_propagation_seconds plat_gateway_revocation_propagation_max_seconds
      plat_gateway_revocation_list_ok plat_gateway_metered_cost_usd plat_gateway_budget_denied_total plat_gateway_budget_alerts_total
      plat_gateway_rate_limited_total plat_gateway_model_routes plat_gateway_model_requests_total plat_gateway_model_tokens_total
      plat_gateway_model_failovers_total plat_gateway_model_endpoint_failures_total plat_gateway_model_endpoint_skipped_total
      plat_gateway_model_circuits_open plat_gateway_a2a_calls_total plat_gateway_a2a_routes plat_gateway_web_calls_total
      plat_gateway_egress_requests_total plat_gateway_exec_total plat_gateway_audit_head_seq plat_gateway_audit_errors_total
      plat_gateway_audit_commit_seconds plat_gateway_audit_committed_records_total plat_gateway_audit_signed_checkpoint_seq
      plat_gateway_audit_retention_below_ai_act plat_gateway_audit_sink_lag plat_gateway_audit_sink_delivered_total
      plat_gateway_audit_sink_errors_total plat_gateway_audit_sink_dead_lettered_total plat_gateway_audit_anchor_seq
      plat_gateway_audit_anchors_total plat_gateway_audit_anchor_errors_total plat_gateway_audit_anchor_last_success_timestamp_seconds
      plat_gateway_audit_forward_unforwarded_records plat_gateway_audit_forward_oldest_unforwarded_age_seconds
      plat_gateway_audit_forward_last_ack_timestamp_seconds plat_gateway_audit_forward_acked_seq plat_gateway_audit_forward_spool_bytes
      plat_gateway_audit_forward_spool_max_bytes plat_gateway_audit_forward_spool_full plat_gateway_audit_forward_connected
      plat_gateway_audit_forward_errors_total plat_gateway_offline_denials_total plat_gateway_audit_collector_segments_total
      plat_gateway_audit_collector_refused_total plat_gateway_audit_collector_edge_seq
      plat_gateway_configsync_last_success_timestamp_seconds plat_gateway_configsync_errors_total plat_gateway_config_bundle_revision
      plat_gateway_config_bundles_applied_total plat_gateway_config_bundles_refused_total plat_gateway_state_backend_info
      plat_gateway_leader mcp_server_operation_duration_seconds gen_ai_client_token_usage gen_ai_client_operation_duration_seconds
      plat_gateway_otel_spans_exported_total plat_gateway_otel_spans_dropped_total plat_gateway_otel_spans_failed_total
      plat_gateway_otel_queue_length plat_gateway_ctxengine_contexts plat_gateway_ctxengine_context_ops_total
      plat_gateway_ctxengine_audit_verified plat_gateway_ctxengine_anchor_append_failures_total plat_gateway_ctxengine_audit_head_seq
      plat_gateway_sbxd_mirror_total plat_gateway_sbxd_audit_verified plat_gateway_sbxd_anchor_append_failures_total
      plat_gateway_sbxd_audit_head_seq`,
  },
  {
    section: 'metric',
    heading: 'Metrics, licence, operator, attestation service',
    keys: `plat_license_state plat_license_days_left plat_license_node_limit plat_session_ready_seconds plat_sessions
      plat_session_phase_transitions_total plat_session_outcomes_total plat_token_mint_seconds plat_warm_pool_ready
      plat_reconcile_errors_total plat_reconcile_duration_seconds plat_rendered_configmap_bytes plat_billable_nodes
      plat_attest_success_total plat_attest_failure_total plat_attest_releases_created_total plat_attest_renewal_success_total
      plat_attest_renewal_failure_total plat_attest_releases_pending plat_attest_renewals_active`,
  },
  {
    section: 'label',
    heading: 'Metrics, closed values of labels',
    keys: `plat_gateway_rego_evaluations_total.outcome.ok plat_gateway_rego_evaluations_total.outcome.error
      plat_gateway_arg_captures_total.outcome.written plat_gateway_arg_captures_total.outcome.dropped
      plat_gateway_arg_captures_total.outcome.failed plat_gateway_dlp_hits_total.direction.arguments
      plat_gateway_dlp_hits_total.direction.response plat_gateway_revocations_active.source.breakglass
      plat_gateway_revocations_active.source.file plat_gateway_model_tokens_total.kind.prompt
      plat_gateway_model_tokens_total.kind.completion plat_gateway_offline_denials_total.rule.spool-full
      plat_gateway_offline_denials_total.rule.revocation-stale plat_gateway_offline_denials_total.rule.approval-offline
      plat_license_state.state.none plat_license_state.state.invalid plat_license_state.state.valid
      plat_license_state.state.grace plat_license_state.state.expired plat_session_ready_seconds.mode.claim
      plat_session_ready_seconds.mode.direct plat_session_outcomes_total.result.Succeeded
      plat_session_outcomes_total.result.Failed plat_session_outcomes_total.result.Expired
      plat_session_outcomes_total.result.Revoked plat_session_outcomes_total.result.Cancelled
      plat_billable_nodes.period.current plat_billable_nodes.period.day plat_billable_nodes.period.month`,
  },
]
