package serve

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// stats are the metrics of a server.
type stats struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	images   *prometheus.CounterVec
	batches  *prometheus.HistogramVec
	reloads  *prometheus.CounterVec
}

// modelStats are those of one model.
type modelStats struct {
	requests *prometheus.CounterVec
	ok       prometheus.Counter
	seconds  prometheus.Observer
	images   prometheus.Counter
	batches  prometheus.ObserverVec
	reloads  *prometheus.CounterVec
}

func newStats() *stats {
	s := &stats{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tessera_requests_total",
			Help: "Inference requests by model and HTTP status."}, []string{"model", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "tessera_request_seconds",
			Help:    "Time of inference requests, from the end of the header to the end of the response.",
			Buckets: prometheus.ExponentialBuckets(50e-6, 2, 16)}, []string{"model"}),
		images: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tessera_images_total",
			Help: "Images of answered inference requests."}, []string{"model"}),
		batches: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "tessera_batch_images",
			Help:    "Images that were computed together.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 11)}, []string{"model", "output"}),
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tessera_reloads_total",
			Help: "Reloads of a run whose files changed, by result: ok or error."}, []string{"model", "result"}),
	}
	s.registry.MustRegister(s.requests, s.seconds, s.images, s.batches, s.reloads,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return s
}

// model returns the metrics of a model.
func (s *stats) model(name string) *modelStats {
	label := prometheus.Labels{"model": name}
	requests := s.requests.MustCurryWith(label)
	return &modelStats{requests: requests, ok: requests.WithLabelValues("200"), seconds: s.seconds.With(label), images: s.images.With(label),
		batches: s.batches.MustCurryWith(label), reloads: s.reloads.MustCurryWith(label)}
}

// batch returns what is called with the images of every batch of an output.
func (m *modelStats) batch(output string) func(images int) {
	o := m.batches.WithLabelValues(output)
	return func(images int) { o.Observe(float64(images)) }
}

// answered counts a request.
func (m *modelStats) answered(status, images int, began time.Time) {
	if status == http.StatusOK {
		m.ok.Inc()
		m.images.Add(float64(images))
	} else {
		m.requests.WithLabelValues(strconv.Itoa(status)).Inc()
	}
	m.seconds.Observe(time.Since(began).Seconds())
}

// waiting exports the images that wait and the bytes that are held now.
func (s *Server) exportLoad() {
	s.stats.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "tessera_body_bytes",
		Help: "Bytes of request bodies that are held now."}, func() float64 { return float64(s.memory.Load()) }))
	s.stats.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "tessera_queue_images",
		Help: "Images that wait now, over all models and outputs."}, func() float64 {
		total := int64(0)
		for _, m := range s.models {
			l := m.acquire()
			for _, o := range l.outputs {
				total += o.batch.waiting.Load()
			}
			l.release()
		}
		return float64(total)
	}))
}

func (s *stats) handler() http.Handler {
	return promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{})
}
