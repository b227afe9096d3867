{{- define "renderer.name" -}}
{{- default .Release.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "renderer.selector" -}}
app.kubernetes.io/name: renderer
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "renderer.labels" -}}
{{ include "renderer.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "renderer.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default (printf "v%s" .Chart.AppVersion) .Values.image.tag }}
{{- end -}}
{{- end -}}

{{- /* The configuration file: what the user wrote, and what the chart decides. */ -}}
{{- define "renderer.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $secrets := default dict $config.secrets -}}
{{- if .Values.secrets.kubernetes -}}
{{- $_ := set $secrets "kubernetes" true -}}
{{- else -}}
{{- $_ := set $secrets "directory" "/var/run/renderer/secrets" -}}
{{- end -}}
{{- $_ := set $config "secrets" $secrets -}}
{{- $_ := set $config "server" (dict "listen" ":8080") -}}
{{- $_ := set $config "state" (dict "directory" "/var/lib/renderer") -}}
{{- toYaml $config -}}
{{- end -}}
