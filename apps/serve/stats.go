package serve

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// stats contains the metrics of a server. docs/serve.md lists them.
type stats struct {
	registry          *prometheus.Registry
	requests, images  *prometheus.CounterVec
	seconds, batches  *prometheus.HistogramVec
	reloads           *prometheus.CounterVec
	info, time, stale *prometheus.GaugeVec
}

// modelStats contains the metrics of one model.
type modelStats struct {
	model             string
	requests, reloads *prometheus.CounterVec
	batches           prometheus.ObserverVec
	ok, images        prometheus.Counter
	seconds           prometheus.Observer
	info              *prometheus.GaugeVec
	time, stale       prometheus.Gauge
}

func newStats() *stats {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	s := &stats{
		registry: prometheus.NewRegistry(),
		requests: counter("tessera_requests_total", "Inference requests by model and HTTP status.", "model", "code"),
		seconds: histogram("tessera_request_seconds", "Time of inference requests, from the end of the header to the end of the response.",
			prometheus.ExponentialBuckets(50e-6, 2, 16), "model"),
		images:  counter("tessera_images_total", "Images of answered inference requests.", "model"),
		batches: histogram("tessera_batch_images", "Images that were computed together.", prometheus.ExponentialBuckets(1, 2, 11), "model", "output"),
		reloads: counter("tessera_reloads_total", "Reloads of a run whose files changed, by result: ok or error.", "model", "result"),
		info:    gauge("tessera_model_info", "1 for the served version of a model.", "model", "version"),
		time:    gauge("tessera_model_loaded_timestamp_seconds", "When the served version was loaded, in seconds since 1970.", "model"),
		stale:   gauge("tessera_model_stale", "1 while the files of a run have changed and cannot be read: a former version is served.", "model"),
	}
	s.registry.MustRegister(s.requests, s.seconds, s.images, s.batches, s.reloads, s.info, s.time, s.stale,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return s
}

func (s *stats) model(name string) *modelStats {
	label := prometheus.Labels{"model": name}
	requests := s.requests.MustCurryWith(label)
	return &modelStats{model: name, requests: requests, ok: requests.WithLabelValues("200"), seconds: s.seconds.With(label), images: s.images.With(label),
		batches: s.batches.MustCurryWith(label), reloads: s.reloads.MustCurryWith(label), info: s.info,
		time: s.time.With(label), stale: s.stale.With(label)}
}

// forget removes the metrics of a model that is not served.
func (s *stats) forget(name string) {
	label := prometheus.Labels{"model": name}
	for _, v := range []interface{ DeletePartialMatch(prometheus.Labels) int }{s.requests, s.seconds, s.images, s.batches, s.reloads, s.info, s.time, s.stale} {
		v.DeletePartialMatch(label)
	}
}

// batch returns a function that counts the images of every batch of an output.
func (m *modelStats) batch(output string) func(images int) {
	o := m.batches.WithLabelValues(output)
	return func(images int) { o.Observe(float64(images)) }
}

// answered records an answered request: its status, its number of images and its duration.
func (m *modelStats) answered(status, images int, began time.Time) {
	if status == http.StatusOK {
		m.ok.Inc()
		m.images.Add(float64(images))
	} else {
		m.requests.WithLabelValues(strconv.Itoa(status)).Inc()
	}
	m.seconds.Observe(time.Since(began).Seconds())
}

// loaded records that a version of the model is loaded and served from now on.
func (m *modelStats) loaded(version string) {
	m.info.DeletePartialMatch(prometheus.Labels{"model": m.model})
	m.info.WithLabelValues(m.model, version).Set(1)
	m.time.SetToCurrentTime()
}

// failing records whether the files of the model cannot be read.
func (m *modelStats) failing(is bool) {
	m.stale.Set(0)
	if is {
		m.stale.Set(1)
	}
}

// exportLoad registers two gauges that are read at each scrape: the memory of requests in bytes, and the number of waiting
// images.
func (s *Server) exportLoad() {
	s.stats.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "tessera_request_bytes",
		Help: "Bytes that requests hold now: bodies, images, results and responses."}, func() float64 { return float64(s.memory.Load()) }))
	s.stats.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "tessera_queue_images",
		Help: "Images that wait now, over all models and outputs."}, func() float64 {
		total := int64(0)
		for _, m := range s.models {
			l := m.acquire()
			if l == nil {
				continue
			}
			for _, o := range l.outputs {
				total += o.batch.waiting.Load()
			}
			l.release()
		}
		return float64(total)
	}))
}
